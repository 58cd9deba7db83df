#pragma once
// Where a prefix of a model ends: what its first layers put out as far as later layers read it, be
// it one tensor or several.

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

// The outputs of layers [0, depth) that layers from `depth` on read: ascending, each once.
std::vector<LayerOutput> find_boundary(const ModelSpec& model, int depth);

// Those of a micro-batch, in that order.
struct PrefixFeatures {
  int depth = 0;  // 0: none
  Tensors tensors = {};
};

// By layer of the prefix, as if it had run: each tensor stands where its layer puts it.
std::vector<Tensors> spread_by_layer(const ModelSpec& model, const PrefixFeatures& features);

}  // namespace frazil
