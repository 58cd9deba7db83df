#include "profiles/import/sailor_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "profiles/error.h"
#include "profiles/import/sailor_json.h"
#include "profiles/json.h"
#include "profiles/split_backward.h"

namespace frazil {
namespace {

constexpr std::int64_t kAdamMoments = 2;

std::vector<SailorLayerTimes> read_row(const JsonCursor& row) {
  std::vector<SailorLayerTimes> layers;
  for (const JsonCursor& layer : take_layers(row)) {
    const std::vector<JsonCursor> times = layer.items();
    if (times.size() != 3) {
      layer.fail(fmt::format("{} times", times.size()), "forward, backward and update");
    }
    layers.push_back({.forward = take_seconds(times[0]),
                      .backward = take_seconds(times[1]),
                      .update = take_seconds(times[2])});
  }
  return layers;
}

SailorTimes read_times(const JsonCursor& root) {
  SailorTimes times;
  std::optional<std::size_t> layers;
  visit_numbered(root, 1, "a micro-batch size", [&](int size, const JsonCursor& by_degree) {
    visit_numbered(by_degree, 1, "a degree of tensor parallelism",
                   [&](int degree, const JsonCursor& row) {
                     std::vector<SailorLayerTimes> read = read_row(row);
                     if (layers && *layers != read.size()) {
                       row.fail(fmt::format("{} layers", read.size()),
                                fmt::format("{}, as in the rows before", *layers));
                     }
                     layers = read.size();
                     times[degree][size] = std::move(read);
                   });
  });
  return times;
}

// Takes one member and ignores the others, which are of other models and GPUs.
JsonCursor take_named(const JsonCursor& object, const std::string& name) {
  return JsonFields(object).required(name);
}

SailorLayerSizes read_sizes(const JsonCursor& layer) {
  JsonFields fields(layer);
  const auto take = [&](const std::string& what) {
    fields.optional(what + "_floats");
    return Bytes{fields.required(what + "_bytes").integer(0, kLargestQuantity)};
  };
  const SailorLayerSizes sizes{.parameters = take("params"),
                               .output = take("act_output"),
                               .input = take("act_input"),
                               .stash = take("act_mem")};
  fields.finish();
  return sizes;
}

Duration find_median_update(const std::map<int, std::vector<SailorLayerTimes>>& rows,
                            std::size_t layer) {
  std::vector<Duration> updates;
  for (const auto& [size, row] : rows) updates.push_back(row[layer].update);
  std::sort(updates.begin(), updates.end());
  return updates[(updates.size() - 1) / 2];
}

Bytes scale_stash(Bytes stash, int samples, const std::string& file) {
  if (stash.count > kLargestQuantity / samples) {
    throw InputError(file, 0,
                     fmt::format("a stash of {} samples of {} bytes", samples, stash.count),
                     fmt::format("at most {} bytes", kLargestQuantity));
  }
  return stash * samples;
}

Layer make_layer(std::size_t index, const std::map<int, std::vector<SailorLayerTimes>>& rows,
                 const SailorLayerSizes& sizes, const std::string& file) {
  Layer layer{.name = fmt::format("layer.{}", index),
              .block = BlockId{index},
              .has_loss = false,
              .parameters = sizes.parameters,
              .optimizer_state = sizes.parameters * kAdamMoments,
              .update = find_median_update(rows, index),
              .costs = {}};
  for (const auto& [size, row] : rows) {
    layer.costs.push_back({.micro_batch_size = size,
                           .forward = row[index].forward,
                           .forward_frozen = row[index].forward,
                           .backward_input = row[index].backward,
                           .stash = scale_stash(sizes.stash, size, file)});
  }
  return layer;
}

}  // namespace

SailorTimes parse_sailor_times(std::string_view text, const std::string& file) {
  return read_times(parse_json(text, file));
}

SailorTimes parse_sailor_times(std::string_view text, const std::string& file,
                               const std::string& model, const std::string& gpu) {
  return read_times(take_named(take_named(parse_json(text, file), model), gpu));
}

SailorSizes parse_sailor_sizes(std::string_view text, const std::string& file,
                               const std::string& model) {
  SailorSizes sizes;
  visit_numbered(take_named(parse_json(text, file), model), 1, "a degree of tensor parallelism",
                 [&](int degree, const JsonCursor& layers) {
                   for (const JsonCursor& layer : take_layers(layers)) {
                     sizes[degree].push_back(read_sizes(layer));
                   }
                 });
  return sizes;
}

SailorConfig parse_sailor_config(std::string_view text, const std::string& file) {
  JsonFields fields(parse_json(text, file));
  const JsonCursor model = fields.required("model");
  if (model.text().empty()) model.fail(model.describe(), "a name");
  return {.model = model.text(),
          .layers =
              static_cast<int>(fields.required("num_all_layers").integer(1, kLargestSailorNumber)),
          .optimizer = fields.required("optimizer").text()};
}

ModelProfile make_sailor_profile(const SailorConfig& config, const SailorTimes& times,
                                 const SailorSizes& sizes, int degree, const std::string& file) {
  const auto rows = times.find(degree);
  const auto bytes = sizes.find(degree);
  if (rows == times.end() || bytes == sizes.end()) {
    throw InputError(file, 0,
                     fmt::format("no {} of tensor parallelism {}",
                                 rows == times.end() ? "times" : "sizes", degree),
                     "a measured degree");
  }
  const auto layers = static_cast<std::size_t>(config.layers);
  const std::size_t timed = rows->second.begin()->second.size();
  if (timed != layers || bytes->second.size() != layers) {
    throw InputError(file, 0,
                     fmt::format("times of {} layers and sizes of {}", timed, bytes->second.size()),
                     fmt::format("the {} layers of the configuration", layers));
  }
  if (config.optimizer != "Adam") {
    throw InputError(file, 0, fmt::format("optimizer \"{}\"", to_one_line(config.optimizer)),
                     "\"Adam\", whose state has a known size");
  }
  ModelProfile profile;
  profile.model = config.model;
  profile.input_bytes_per_sample = bytes->second.front().input;
  for (std::size_t i = 0; i < layers; ++i) {
    profile.layers.push_back(make_layer(i, rows->second, bytes->second[i], file));
    profile.blocks.push_back(profile.layers.back().name);
    if (i > 0) {
      profile.edges.push_back({.from = LayerId{i - 1},
                               .to = LayerId{i},
                               .kind = EdgeKind::kGradient,
                               .tensor_bytes_per_sample = {bytes->second[i - 1].output}});
    }
  }
  profile.layers.back().has_loss = true;
  split_whole_backwards(profile);
  profile.provenance["source"] = "Sailor (eth-easl/sailor)";
  profile.provenance["tensor_parallelism"] = std::to_string(degree);
  validate(profile, file);
  return profile;
}

}  // namespace frazil
