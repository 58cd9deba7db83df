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

}  // namespace frazil
