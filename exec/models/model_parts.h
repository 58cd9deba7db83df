#pragma once
// What several of the built-in models are put together of.

#include <cstdint>
#include <functional>

#include "exec/models/model.h"

namespace frazil {

// A transformer's layers: those of its first block, those of block "block1" and on, which are two
// each, and those of its head. `attention` and `mlp` are given the index of a block, from 0.
struct TransformerLayers {
  std::vector<LayerSpec> embedding;
  std::function<LayerSpec(int)> attention;
  std::function<LayerSpec(int)> mlp;
  std::vector<LayerSpec> head;
};

// Gives the model the blocks "embedding", so many of attention and MLP, and "head", with their
// layers. Edges stay as they are.
void stack_blocks(ModelSpec& model, int blocks, TransformerLayers layers);

// The loss of a classifier is the mean cross entropy of its logits, [n, classes].
at::Tensor class_loss(const Tensors& outputs, const at::Tensor& labels);

// Returns the layer "classifier", with that loss: the mean over the pixels of each of `in`
// channels, and a linear map. It reads [n, in, side, side].
LayerSpec make_pooled_classifier(BlockId block, std::int64_t in, std::int64_t classes);

}  // namespace frazil
