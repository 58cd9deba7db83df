#include "exec/checkpoint/checkpoint_header.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "exec/disk/hashes.h"
#include "profiles/error.h"
#include "profiles/json.h"

namespace frazil {
namespace {

constexpr std::size_t kAlignment = 64;
constexpr std::int64_t kMostSteps = 999'999'999'999;

using Json = nlohmann::ordered_json;

std::size_t float_size(const std::vector<std::int64_t>& shape) {
  std::size_t size = sizeof(float);
  for (const std::int64_t extent : shape) size *= static_cast<std::size_t>(extent);
  return size;
}

Json entry(const char* type, const std::vector<std::int64_t>& shape, std::size_t begin,
           std::size_t size) {
  return {{"dtype", type}, {"shape", shape}, {"data_offsets", {begin, begin + size}}};
}

std::uint64_t take_bits(JsonFields& fields, const std::string& key) {
  const JsonCursor value = fields.required(key);
  const auto bits = parse_hex(value.text());
  if (!bits) value.fail(value.describe(), "16 hex digits");
  return *bits;
}

double take_double(JsonFields& fields, const std::string& key) {
  return std::bit_cast<double>(take_bits(fields, key));
}

Json costs_json(const MeasuredCosts& costs) {
  return {{"beside", to_hex(costs.beside)},
          {"devices_ppm", costs.scales.device_ppm},
          {"layers_ppm", costs.scales.layer_ppm},
          {"plan", costs.plan}};
}

std::vector<std::int64_t> take_scales(JsonFields& fields, const std::string& key) {
  std::vector<std::int64_t> scales;
  for (const JsonCursor& each : fields.required(key).items()) {
    scales.push_back(each.integer(1, kLargestTimePpm));
  }
  return scales;
}

MeasuredCosts read_costs(const JsonCursor& text) {
  JsonFields fields(text);
  MeasuredCosts costs;
  costs.beside = take_bits(fields, "beside");
  costs.scales.device_ppm = take_scales(fields, "devices_ppm");
  costs.scales.layer_ppm = take_scales(fields, "layers_ppm");
  costs.plan = fields.required("plan").text();
  fields.finish();
  return costs;
}

}  // namespace

std::size_t align_up(std::size_t size) { return divide_up(size, kAlignment) * kAlignment; }

std::vector<StoredTensor> list_tensors(const ModelSpec& model,
                                       const std::vector<LayerShape>& layers) {
  std::vector<StoredTensor> tensors;
  std::set<std::string> taken;
  for (std::size_t l = 0; l < layers.size(); ++l) {
    std::vector<StoredTensor> own;
    std::vector<StoredTensor> trainable;
    for (const ParameterSpec& parameter : model.layers[l].parameters) {
      std::string name = parameter.name;
      if (!taken.insert(name).second) name += "@" + std::to_string(l);
      own.push_back({std::move(name), parameter.shape, float_size(parameter.shape)});
      if (parameter.trainable) trainable.push_back(own.back());
    }
    const auto add = [&](const std::string& prefix) {
      for (const StoredTensor& tensor : trainable) {
        tensors.push_back({prefix + tensor.name, tensor.shape, tensor.bytes});
      }
    };
    tensors.insert(tensors.end(), own.begin(), own.end());
    if (layers[l].first_moment) add("first_moment.");
    if (layers[l].second_moment) add("second_moment.");
    if (layers[l].gradient_sums) add("gradient_sum.");
    for (const StatisticSpec& statistic : model.layers[l].statistics) {
      std::string name = statistic.name;
      if (!taken.insert(name).second) name += "@" + std::to_string(l);
      tensors.push_back({std::move(name), statistic.value.sizes().vec(), statistic.value.nbytes(),
                         statistic.value.scalar_type() == at::kLong});
    }
  }
  return tensors;
}

std::string to_json(const CheckpointMetadata& data) {
  const TrainingPosition& position = data.position;
  Json text{{"format", "frazil.checkpoint"},
            {"version", 1},
            {"model_hash", data.run.model_hash},
            {"run_hash", to_hex(data.run.run_hash)},
            {"step", position.step},
            {"steps", position.steps},
            {"epoch", position.epoch},
            {"step_in_epoch", position.step_in_epoch},
            {"epoch_loss_bits", to_hex(std::bit_cast<std::uint64_t>(position.epoch_loss))},
            {"epoch_samples", position.epoch_samples},
            {"learning_rate_bits", to_hex(std::bit_cast<std::uint64_t>(position.learning_rate))},
            {"mask", position.mask.text()},
            {"authority", position.authority}};
  if (position.costs) text["costs"] = costs_json(*position.costs);
  // Each layer has an entry in each list: how many moments its parameters have, how often it was
  // updated, and whether it has sums of gradients.
  for (const LayerShape& layer : data.layers) {
    text["moments"].push_back(int{layer.first_moment} + int{layer.second_moment});
    text["updates"].push_back(layer.updates);
    text["gradient_sums"].push_back(int{layer.gradient_sums});
  }
  for (const std::uint64_t hash : data.hashes) text["tensor_hashes"].push_back(to_hex(hash));
  return text.dump();
}

std::string make_header(const std::string& metadata, const std::vector<StoredTensor>& tensors) {
  std::string text = "{\"__metadata__\":{\"checkpoint\":" + json_string(metadata) + "}";
  const auto add = [&](const std::string& name, const Json& what) {
    text += "," + json_string(name) + ":" + what.dump();
  };
  add("header_hash", entry("U8", {kHeaderHashBytes}, 0, kHeaderHashBytes));
  std::size_t place = kHeaderHashBytes;
  int paddings = 0;
  for (const StoredTensor& tensor : tensors) {
    if (const std::size_t gap = align_up(place) - place; gap > 0) {
      add("padding." + std::to_string(paddings++),
          entry("U8", {static_cast<std::int64_t>(gap)}, place, gap));
    }
    place = align_up(place);
    add(tensor.name, entry(tensor.is_whole ? "I64" : "F32", tensor.shape, place, tensor.bytes));
    place += tensor.bytes;
  }
  text += "}";
  text.resize(align_up(kHeaderSizeBytes + text.size()) - kHeaderSizeBytes, ' ');
  return text;
}

CheckpointMetadata parse_metadata(std::string_view text, const std::string& file) {
  CheckpointMetadata data;
  JsonFields fields(parse_json(text, file));
  expect_format(fields, "frazil.checkpoint", 1);
  data.run.model_hash = fields.required("model_hash").text();
  data.run.run_hash = take_bits(fields, "run_hash");
  TrainingPosition& position = data.position;
  position.step = fields.required("step").integer(0, kMostSteps);
  position.steps = fields.required("steps").integer(position.step, kMostSteps);
  position.epoch = static_cast<int>(
      fields.required("epoch").integer(0, std::numeric_limits<std::int32_t>::max()));
  position.step_in_epoch = fields.required("step_in_epoch").integer(0, kMostSteps);
  position.epoch_loss = take_double(fields, "epoch_loss_bits");
  position.epoch_samples = fields.required("epoch_samples").integer(0, kLargestQuantity);
  position.learning_rate = take_double(fields, "learning_rate_bits");
  const JsonCursor mask = fields.required("mask");
  position.mask = FreezeMask::parse(mask);
  position.authority = fields.required("authority").text();
  if (const auto costs = fields.optional("costs")) position.costs = read_costs(*costs);
  for (const JsonCursor& moments : fields.required("moments").items()) {
    const std::int64_t count = moments.integer(0, 2);
    data.layers.push_back({.first_moment = count > 0, .second_moment = count > 1});
  }
  const std::vector<JsonCursor> updates = fields.required("updates").items();
  for (std::size_t l = 0; l < std::min(updates.size(), data.layers.size()); ++l) {
    data.layers[l].updates = updates[l].integer(0, kMostSteps);
  }
  const std::vector<JsonCursor> sums = fields.required("gradient_sums").items();
  for (std::size_t l = 0; l < std::min(sums.size(), data.layers.size()); ++l) {
    data.layers[l].gradient_sums = sums[l].integer(0, 1) == 1;
  }
  for (const JsonCursor& hash : fields.required("tensor_hashes").items()) {
    data.hashes.push_back(parse_hex(hash.text()).value_or(0));
  }
  fields.finish();
  return data;
}

std::string find_metadata(std::string_view header, const std::string& file) {
  JsonFields fields(parse_json(header, file));
  JsonFields metadata(fields.required("__metadata__"));
  return metadata.required("checkpoint").text();
}

}  // namespace frazil
