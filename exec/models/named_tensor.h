#pragma once
// A weight with the name under which a file keeps it.

#include <ATen/core/Tensor.h>

#include <string>

namespace frazil {

struct NamedTensor {
  std::string name;
  at::Tensor tensor;
};

}  // namespace frazil
