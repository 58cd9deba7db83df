// Reads the settings of exec/models/choice/network_choice.h.
#include "exec/models/choice/network_choice.h"

#include "profiles/error.h"
#include "profiles/json_settings.h"

namespace frazil {
namespace {

namespace fs = std::filesystem;

constexpr int kLargestExpansion = 1 << 10;
constexpr int kMostUnits = 1 << 16;

// Takes what every transformer has.
template <class Config>
void take_width(JsonFields& fields, Config& model) {
  const Given dim = take(fields, "dim", 1, kLargestCount, model.dim);
  take(fields, "blocks", 1, kLargestCount, model.blocks);
  const Given heads = take(fields, "heads", 1, kLargestCount, model.heads);
  if (model.dim % model.heads == 0) return;
  blame({heads, dim},
        with_value("dim", model.dim) + " divisible by " + with_value("heads", model.heads));
}

NetworkChoice parse_vit(JsonFields& fields, const fs::path&) {
  VitConfig model;
  const Given image = take(fields, "image", 1, kLargestCount, model.image);
  take(fields, "channels", 1, kLargestCount, model.channels);
  const Given patch = take(fields, "patch", 1, kLargestCount, model.patch);
  take_width(fields, model);
  take(fields, "classes", 2, kLargestCount, model.classes);
  take(fields, "dropout", Range::kFraction, model.dropout);
  if (model.image % model.patch != 0) {
    blame({patch, image},
          with_value("image", model.image) + " divisible by " + with_value("patch", model.patch));
  }
  return model;
}

NetworkChoice parse_decoder(JsonFields& fields, const fs::path&) {
  DecoderConfig model;
  take(fields, "vocabulary", 2, kLargestCount, model.vocabulary);
  take(fields, "tokens", 1, kLargestCount, model.tokens);
  take_width(fields, model);
  take(fields, "expansion", 1, kLargestExpansion, model.expansion);
  take(fields, "dropout", Range::kFraction, model.dropout);
  return model;
}

NetworkChoice parse_encoder(JsonFields& fields, const fs::path&) {
  EncoderConfig model;
  take(fields, "vocabulary", 2, kLargestCount, model.vocabulary);
  take(fields, "segments", 1, kLargestCount, model.segments);
  take(fields, "tokens", 1, kLargestCount, model.tokens);
  take_width(fields, model);
  take(fields, "expansion", 1, kLargestExpansion, model.expansion);
  take(fields, "classes", 2, kLargestCount, model.classes);
  take(fields, "dropout", Range::kFraction, model.dropout);
  return model;
}

// The norms are over two groups of channels.
void take_even(JsonFields& fields, const std::string& key, int& value) {
  const Given given = take(fields, key, 2, kLargestCount, value);
  if (value % 2 != 0) given->fail(given->describe(), "an even number");
}

NetworkChoice parse_cnn(JsonFields& fields, const fs::path&) {
  CnnConfig model;
  take(fields, "image", 1, kLargestCount, model.image);
  take(fields, "channels", 1, kLargestCount, model.channels);
  take_even(fields, "width", model.width);
  take_even(fields, "detour", model.detour);
  take(fields, "units", 1, kMostUnits, model.units);
  take(fields, "classes", 2, kLargestCount, model.classes);
  return model;
}

std::vector<int> read_counts(const JsonCursor& given, int largest) {
  std::vector<int> counts;
  for (const JsonCursor& count : given.items()) {
    counts.push_back(static_cast<int>(count.integer(1, largest)));
  }
  return counts;
}

void take_widths(JsonFields& fields, const std::string& expected, std::vector<int>& widths) {
  const Given given = fields.optional("widths");
  if (!given) return;
  widths = read_counts(*given, kLargestCount);
  if (widths.empty()) given->fail("no width", expected);
}

void take_flag(JsonFields& fields, const std::string& key, bool& value) {
  if (const Given given = fields.optional(key)) value = given->boolean();
}

NetworkChoice parse_mlp(JsonFields& fields, const fs::path&) {
  MlpConfig model;
  take(fields, "image", 1, kLargestCount, model.image);
  take(fields, "channels", 1, kLargestCount, model.channels);
  take_widths(fields, "one for each layer below the head", model.widths);
  take(fields, "classes", 2, kLargestCount, model.classes);
  return model;
}

NetworkChoice parse_vgg(JsonFields& fields, const fs::path&) {
  VggConfig model;
  take(fields, "image", 1, kLargestCount, model.image);
  take(fields, "channels", 1, kLargestCount, model.channels);
  take_widths(fields, "one for each stage of convolutions", model.widths);
  take(fields, "convolutions", 1, kMostUnits, model.convolutions);
  take_flag(fields, "separable", model.separable);
  take_flag(fields, "batch_norm", model.batch_norm);
  take(fields, "classes", 2, kLargestCount, model.classes);
  return model;
}

// Throws where a list has another length than `expected`, which `of` tells of.
void expect_length(const JsonCursor& list, std::size_t found, std::size_t expected,
                   const std::string& of) {
  if (found == expected) return;
  list.fail("a list of " + std::to_string(found),
            std::to_string(expected) + ", one for each " + of);
}

// Takes a number for each stage. Without them it is `first` of the first stage and `others`.
void take_of_stages(JsonFields& fields, const std::string& key, int largest, std::size_t stages,
                    std::pair<int, int> defaults, std::vector<int>& counts) {
  const Given given = fields.optional(key);
  if (given) {
    counts = read_counts(*given, largest);
    expect_length(*given, counts.size(), stages, "of \"widths\"");
    return;
  }
  counts.assign(stages, defaults.second);
  counts.front() = defaults.first;
}

void take_shape(JsonFields& fields, MobilenetShape& shape) {
  constexpr int kLargestStride = 2;
  const MobilenetShape plain;
  take(fields, "image", 1, kLargestCount, shape.image);
  take(fields, "channels", 1, kLargestCount, shape.channels);
  take(fields, "stem", 1, kLargestCount, shape.stem);
  take(fields, "stem_stride", 1, kLargestStride, shape.stem_stride);
  take_widths(fields, "one for each stage of cells", shape.widths);
  take_of_stages(fields, "cells", kMostUnits, shape.widths.size(),
                 {plain.cells.front(), plain.cells.back()}, shape.cells);
  take_of_stages(fields, "strides", kLargestStride, shape.widths.size(),
                 {plain.strides.front(), plain.strides.back()}, shape.strides);
  take(fields, "head", 1, kLargestCount, shape.head);
  take_flag(fields, "batch_norm", shape.batch_norm);
  take(fields, "classes", 2, kLargestCount, shape.classes);
}

CellOperation read_operation(const JsonCursor& given, const CellShape& cell) {
  const auto operation = static_cast<CellOperation>(read_name(given, kCellOperations));
  if (operation == CellOperation::kZero && !cell.has_skip()) {
    given.fail(given.describe(), "another operation: cell " + cell.name +
                                     " has no skip, as its input has another size than its output");
  }
  return operation;
}

NetworkChoice parse_mobilenet(JsonFields& fields, const fs::path&) {
  MobilenetConfig model;
  take_shape(fields, model.shape);
  const Given given = fields.optional("operations");
  if (!given) return model;
  const std::vector<std::vector<CellShape>> stages = list_cells(model.shape);
  const std::vector<JsonCursor> lists = given->items();
  expect_length(*given, lists.size(), stages.size(), "of \"widths\"");
  for (std::size_t s = 0; s < stages.size(); ++s) {
    const std::vector<JsonCursor> names = lists[s].items();
    expect_length(lists[s], names.size(), stages[s].size(), "cell of the stage");
    std::vector<CellOperation>& stage = model.operations.emplace_back();
    for (std::size_t k = 0; k < names.size(); ++k) {
      stage.push_back(read_operation(names[k], stages[s][k]));
    }
  }
  return model;
}

NetworkChoice parse_supernet(JsonFields& fields, const fs::path&) {
  SupernetConfig model;
  take_shape(fields, model.shape);
  take(fields, "architecture_every", 0, kLargestCount, model.architecture_every);
  take(fields, "architecture_from", 0, kLargestCount, model.architecture_from);
  return model;
}

NetworkChoice parse_file(JsonFields& fields, const fs::path& folder) {
  const JsonCursor path = fields.required("path");
  if (path.text().empty()) path.fail(path.describe(), "the path of a model file");
  return read_file_model(fs::absolute(folder / path.text()).lexically_normal());
}

using Parser = NetworkChoice (*)(JsonFields&, const fs::path&);
constexpr std::array<Parser, kNetworkKinds.size()> kParsers{
    parse_vit, parse_decoder,   parse_encoder,  parse_cnn, parse_mlp,
    parse_vgg, parse_mobilenet, parse_supernet, parse_file};

}  // namespace

NetworkChoice parse_network(JsonFields& fields, std::size_t kind, const fs::path& folder) {
  NetworkChoice choice = kParsers.at(kind)(fields, folder);
  ENSURE(choice.index() == kind, "the kinds in one order");
  fields.finish();
  return choice;
}

}  // namespace frazil
