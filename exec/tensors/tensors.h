#pragma once
// A list of tensors: what a layer reads or puts out, a message, the parameters of a layer.

#include <ATen/core/Tensor.h>

#include <vector>

namespace frazil {

using Tensors = std::vector<at::Tensor>;

}  // namespace frazil
