#pragma once
// Finds where a prefix of a model ends: which outputs of its first layers later layers read, be it
// one tensor or several.

#include <compare>
#include <cstddef>
#include <vector>

#include "exec/models/model.h"

namespace frazil {

struct LayerOutput {
  LayerId layer;
  std::size_t output = 0;
  friend auto operator<=>(const LayerOutput&, const LayerOutput&) = default;
};

// Returns the outputs of layers [0, depth) that layers from `depth` on read: ascending, each once.
std::vector<LayerOutput> find_boundary(const ModelSpec& model, int depth);
// Returns the tensors that these outputs are: of outputs that are the same tensor the first.
std::vector<LayerOutput> find_boundary_tensors(const ModelSpec& model, int depth);

}  // namespace frazil
