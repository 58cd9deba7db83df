#pragma once
// Tells whether numbers are finite, in one pass that only reads.

#include <ATen/core/Tensor.h>

#include "exec/tensors/tensors.h"

namespace frazil {

// Returns false if a value is infinite or not a number. Requires: float32. A contiguous tensor on
// the host is read once and nothing is allocated; of any other tensor the largest magnitude is
// computed where it lies, and waited for.
bool is_finite(const at::Tensor& tensor);
bool are_finite(const Tensors& tensors);

// Returns the largest magnitude of a tensor, a scalar where the tensor lies; it is not finite
// exactly where some value is not. Nothing is waited for.
at::Tensor largest_magnitude(const at::Tensor& tensor);

}  // namespace frazil
