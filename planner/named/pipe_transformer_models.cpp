#include "planner/named/pipe_transformer_models.h"

#include <string>

namespace frazil {
namespace {

// Returns the parameters of a normalization over the hidden size: scale and shift.
std::int64_t count_norm(std::int64_t hidden) { return 2 * hidden; }

std::int64_t count_linear(std::int64_t in, std::int64_t out) { return in * out + out; }

void add_layers(const TransformerShape& shape, std::vector<ParameterUnit>& units) {
  const std::int64_t hidden = shape.hidden;
  for (int layer = 1; layer <= shape.layers; ++layer) {
    const std::string name = "layer" + std::to_string(layer);
    units.push_back(
        {name + ".attention", layer, count_norm(hidden) + 4 * count_linear(hidden, hidden)});
    units.push_back({name + ".mlp", layer,
                     count_norm(hidden) + count_linear(hidden, shape.intermediate) +
                         count_linear(shape.intermediate, hidden)});
  }
}

}  // namespace

VisionShape vit_b16(int classes) { return {.transformer = {}, .classes = classes}; }

std::vector<ParameterUnit> list_vision_units(const VisionShape& shape) {
  const std::int64_t hidden = shape.transformer.hidden;
  const std::int64_t pixels = std::int64_t{3} * shape.patch * shape.patch;
  const std::int64_t class_token = hidden;
  std::vector<ParameterUnit> units{
      {"embedding", 0, count_linear(pixels, hidden) + class_token + shape.positions() * hidden}};
  add_layers(shape.transformer, units);
  const int tail = shape.transformer.layers + 1;
  units.push_back({"norm", tail, count_norm(hidden)});
  units.push_back({"head", tail, count_linear(hidden, shape.classes)});
  return units;
}

BertShape bert_large() {
  return {.transformer = {.layers = 24, .hidden = 1024, .intermediate = 4096}};
}

std::vector<ParameterUnit> list_bert_units(const BertShape& shape, BertTask task) {
  const std::int64_t hidden = shape.transformer.hidden;
  const std::int64_t rows = shape.vocabulary + shape.positions + shape.token_types;
  std::vector<ParameterUnit> units{{"embeddings", 0, rows * hidden + count_norm(hidden)}};
  add_layers(shape.transformer, units);
  const int tail = shape.transformer.layers + 1;
  if (task == BertTask::kClassification) {
    units.push_back({"pooler", tail, count_linear(hidden, hidden)});
    units.push_back({"head", tail, count_linear(hidden, shape.labels)});
  } else {
    constexpr int kStartAndEnd = 2;
    units.push_back({"head", tail, count_linear(hidden, kStartAndEnd)});
  }
  return units;
}

}  // namespace frazil
