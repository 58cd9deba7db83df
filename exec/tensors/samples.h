#pragma once
// Samples as a model reads them: inputs beside the labels that its loss compares them with.

#include <cstdint>

#include "exec/tensors/tensors.h"

namespace frazil {

struct Samples {
  // What the first layers read; all [n, ...], contiguous. Of images one, [n, channels, height,
  // width], float32.
  Tensors inputs;
  at::Tensor labels;  // [n], int64
  std::int64_t count() const;
};

// Samples [first, first + count), as views.
Samples narrow(const Samples& samples, std::int64_t first, std::int64_t count);

}  // namespace frazil
