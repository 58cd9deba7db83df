#pragma once
// A linear map without a bias, as from hidden states to logits by a tied table.

#include "exec/models/model.h"

namespace frazil {

// Works as ParametricOperations::linear does, for a layer that has a weight alone. Requires: `x` is
// contiguous.
at::Tensor linear_without_bias(const LayerCall& call, const at::Tensor& x, std::size_t weight);

}  // namespace frazil
