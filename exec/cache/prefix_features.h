#pragma once
// PrefixFeatures are what the first layers of a model hand on to later layers, kept from an earlier
// run of these layers.

#include <vector>

#include "exec/models/model.h"
#include "exec/tensors/tensors.h"

namespace frazil {

// The outputs at the boundary of a prefix (exec/models/boundary.h) for one micro-batch, in the
// order of find_boundary().
struct PrefixFeatures {
  int depth = 0;  // 0: none
  Tensors tensors = {};
};

// Returns the outputs by layer of the prefix, as if it had run: each tensor stands where its layer
// puts it.
std::vector<Tensors> spread_by_layer(const ModelSpec& model, const PrefixFeatures& features);

}  // namespace frazil
