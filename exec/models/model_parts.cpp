#include "exec/models/model_parts.h"

#include <ATen/ATen.h>

#include <utility>

namespace frazil {

void stack_blocks(ModelSpec& model, int blocks, TransformerLayers layers) {
  model.blocks = {"embedding"};
  model.layers = std::move(layers.embedding);
  for (int i = 0; i < blocks; ++i) {
    model.blocks.push_back("block" + std::to_string(i + 1));
    model.layers.push_back(layers.attention(i));
    model.layers.push_back(layers.mlp(i));
  }
  model.blocks.emplace_back("head");
  for (LayerSpec& layer : layers.head) model.layers.push_back(std::move(layer));
}

at::Tensor class_loss(const Tensors& outputs, const at::Tensor& labels) {
  return at::cross_entropy_loss(outputs.at(0), labels);
}

LayerSpec make_pooled_classifier(BlockId block, std::int64_t in, std::int64_t classes) {
  return {.name = "classifier",
          .block = block,
          .parameters = {linear_weight("classifier", classes, in),
                         linear_bias("classifier", classes, in)},
          .forward = [](const LayerCall& call) -> Tensors {
            const ParametricOperations with(call.parameters, call.operations);
            return {with.linear(call.inputs.at(0).mean({2, 3}), 0, 1)};
          },
          .output_bytes_per_sample = {float_bytes(classes)},
          .narrow_outputs = {0},
          .loss = class_loss};
}

}  // namespace frazil
