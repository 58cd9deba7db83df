#include "tests/exec/models/step_samples.h"

#include <ATen/ATen.h>

#include "exec/tensors/keyed_random.h"

namespace frazil {

std::vector<Samples> draw_micro_batches(
    const StepShape& shape, const std::function<Samples(at::Generator&, std::int64_t)>& draw) {
  at::Generator generator = make_generator(shape.seed, 0, 0, 0);
  std::vector<Samples> micro_batches;
  for (int m = 0; m < shape.micro_batches; ++m) {
    const bool is_last = m + 1 == shape.micro_batches;
    const int count = shape.micro_batch_size - (is_last ? shape.last_short_by : 0);
    micro_batches.push_back(draw(generator, count));
  }
  return micro_batches;
}

at::Tensor draw_normal(at::IntArrayRef shape, at::Generator& generator) {
  return at::empty(shape, at::kFloat).normal_(0, 1, generator);
}

at::Tensor draw_integers(at::IntArrayRef shape, std::int64_t end, at::Generator& generator) {
  return at::empty(shape, at::kLong).random_(0, end, generator);
}

}  // namespace frazil
