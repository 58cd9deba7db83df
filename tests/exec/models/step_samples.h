#pragma once
// The micro-batches of one step of a test's model, drawn by seed alone.

#include <ATen/core/Generator.h>

#include <functional>
#include <vector>

#include "exec/tensors/samples.h"

namespace frazil {

struct StepShape {
  std::uint64_t seed = 0;
  int micro_batches = 4;
  int micro_batch_size = 3;
  int last_short_by = 0;  // samples that the last micro-batch lacks
};

// `draw` makes one micro-batch of so many samples.
std::vector<Samples> draw_micro_batches(
    const StepShape& shape, const std::function<Samples(at::Generator&, std::int64_t)>& draw);

// Draw [n, ...] standard normal numbers, and integers from 0 to below `end`.
at::Tensor draw_normal(at::IntArrayRef shape, at::Generator& generator);
at::Tensor draw_integers(at::IntArrayRef shape, std::int64_t end, at::Generator& generator);

}  // namespace frazil
