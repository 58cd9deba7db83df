#pragma once
// Tensors of a slice of a micro-batch: their dimension 0 counts its samples.

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "exec/tensors/tensors.h"
#include "profiles/units.h"

namespace frazil {

// Throws InfeasibleError naming the layer, the shape and the samples where it does not.
void require_samples(const at::Tensor& tensor, LayerId layer, std::int64_t samples);

// Samples [first, first + count) of each tensor, as views.
Tensors take_rows(const Tensors& tensors, std::int64_t first, std::int64_t count);
// One after the other.
at::Tensor join_rows(const Tensors& pieces);

}  // namespace frazil
