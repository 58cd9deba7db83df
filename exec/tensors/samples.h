#pragma once
// Samples are what a model reads: inputs, and the labels that its loss compares with the outputs.

#include <cstdint>

#include "exec/tensors/tensors.h"

namespace frazil {

struct Samples {
  // The tensors that the first layers read, all [n, ...] and contiguous. Images are one tensor [n,
  // channels, height, width], float32.
  Tensors inputs;
  at::Tensor labels;           // [n], int64
  std::int64_t count() const;  // of labels; 0 if there are none
};

// Returns samples [first, first + count), as views of the same memory. Throws c10::Error if they
// are not all there. Requires: labels.
Samples narrow(const Samples& samples, std::int64_t first, std::int64_t count);

}  // namespace frazil
