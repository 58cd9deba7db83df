#pragma once
// Finds where a prefix of a model ends: which outputs of its first layers later layers read, be it
// one tensor or several.

#include <compare>
#include <cstddef>
#include <vector>

#include "exec/models/model.h"
#include "exec/tensors/tensors.h"

namespace frazil {

struct LayerOutput {
  LayerId layer;
  std::size_t output = 0;
  friend auto operator<=>(const LayerOutput&, const LayerOutput&) = default;
};

// Returns the outputs of layers [0, depth) that layers from `depth` on read: ascending, each once.
std::vector<LayerOutput> find_boundary(const ModelSpec& model, int depth);

// The outputs at that boundary for one micro-batch, in the order of find_boundary.
struct PrefixFeatures {
  int depth = 0;  // 0: none
  Tensors tensors = {};
};

// Returns the outputs by layer of the prefix, as if it had run: each tensor stands where its layer
// puts it.
std::vector<Tensors> spread_by_layer(const ModelSpec& model, const PrefixFeatures& features);

}  // namespace frazil
