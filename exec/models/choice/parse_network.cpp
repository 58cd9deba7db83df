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

void take_widths(JsonFields& fields, const std::string& expected, std::vector<int>& widths) {
  const Given given = fields.optional("widths");
  if (!given) return;
  widths.clear();
  for (const JsonCursor& width : given->items()) {
    widths.push_back(static_cast<int>(width.integer(1, kLargestCount)));
  }
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

NetworkChoice parse_file(JsonFields& fields, const fs::path& folder) {
  const JsonCursor path = fields.required("path");
  if (path.text().empty()) path.fail(path.describe(), "the path of a model file");
  return read_file_model(fs::absolute(folder / path.text()).lexically_normal());
}

using Parser = NetworkChoice (*)(JsonFields&, const fs::path&);
constexpr std::array<Parser, kNetworkKinds.size()> kParsers{
    parse_vit, parse_decoder, parse_encoder, parse_cnn, parse_mlp, parse_vgg, parse_file};

}  // namespace

NetworkChoice parse_network(JsonFields& fields, std::size_t kind, const fs::path& folder) {
  NetworkChoice choice = kParsers.at(kind)(fields, folder);
  ENSURE(choice.index() == kind, "the kinds in one order");
  fields.finish();
  return choice;
}

}  // namespace frazil
