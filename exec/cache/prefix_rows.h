#pragma once
// Some rows of a micro-batch at one depth of its frozen prefix.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "exec/tensors/tensors.h"

namespace frazil {

struct PrefixRows {
  int depth = 0;                        // 0: nothing is there for these rows
  std::vector<std::int64_t> rows = {};  // ascending
  Tensors tensors = {};                 // of these rows, in that order, as in PrefixFeatures
};

}  // namespace frazil
