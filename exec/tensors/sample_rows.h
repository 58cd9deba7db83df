#pragma once
// The tensors of a slice of a micro-batch count its samples in dimension 0.

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "exec/tensors/tensors.h"
#include "profiles/units.h"

namespace frazil {

// Throws InfeasibleError naming the layer, the shape and the samples if dimension 0 of the tensor
// does not count `samples`.
void require_samples(const at::Tensor& tensor, LayerId layer, std::int64_t samples);

// Returns samples [first, first + count) of each tensor, as views.
Tensors take_rows(const Tensors& tensors, std::int64_t first, std::int64_t count);
// Returns the pieces joined one after another; a single piece is returned as it is.
at::Tensor join_rows(const Tensors& pieces);

}  // namespace frazil
