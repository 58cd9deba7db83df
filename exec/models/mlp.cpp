#include "exec/models/mlp.h"

#include <ATen/ATen.h>

#include "exec/models/model_parts.h"

namespace frazil {
namespace {

std::int64_t input_values(const MlpConfig& c) {
  return std::int64_t{c.channels} * c.image * c.image;
}

LayerSpec make_linear(const MlpConfig& c, std::size_t index) {
  const std::string name = "layers." + std::to_string(index);
  const std::int64_t in = index == 0 ? input_values(c) : c.widths[index - 1];
  const std::int64_t out = c.widths[index];
  return {.name = "layer" + std::to_string(index + 1),
          .block = BlockId{index},
          .parameters = {linear_weight(name, out, in), linear_bias(name, out, in)},
          .forward = [](const LayerCall& call) -> Tensors {
            const ParametricOperations with(call.parameters, call.operations);
            return {at::gelu(with.linear(call.inputs.at(0).flatten(1), 0, 1))};
          },
          .output_bytes_per_sample = {float_bytes(out)},
          .narrow_outputs = {0}};
}

LayerSpec make_logits(const MlpConfig& c) {
  return {.name = "head",
          .block = BlockId{c.widths.size()},
          .parameters = {linear_weight("classifier", c.classes, c.widths.back()),
                         linear_bias("classifier", c.classes, c.widths.back())},
          .forward = [](const LayerCall& call) -> Tensors {
            const ParametricOperations with(call.parameters, call.operations);
            return {with.linear(call.inputs.at(0), 0, 1)};
          },
          .output_bytes_per_sample = {float_bytes(c.classes)},
          .narrow_outputs = {0},
          .loss = class_loss};
}

}  // namespace

ModelSpec make_mlp(const MlpConfig& c) {
  ModelSpec model;
  model.name = "mlp-i" + std::to_string(input_values(c));
  model.input_bytes_per_sample = float_bytes(input_values(c));
  for (std::size_t l = 0; l < c.widths.size(); ++l) {
    model.name += "-w" + std::to_string(c.widths[l]);
    model.layers.push_back(make_linear(c, l));
    model.blocks.push_back(model.layers.back().name);
  }
  model.name += "-c" + std::to_string(c.classes);
  model.layers.push_back(make_logits(c));
  model.blocks.emplace_back("head");
  model.edges = make_chain(model.layers);
  return model;
}

}  // namespace frazil
