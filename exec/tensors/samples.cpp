#include "exec/tensors/samples.h"

#include <ATen/ATen.h>

namespace frazil {

std::int64_t Samples::count() const { return labels.defined() ? labels.size(0) : 0; }

Samples narrow(const Samples& samples, std::int64_t first, std::int64_t count) {
  Samples some;
  for (const at::Tensor& input : samples.inputs) {
    some.inputs.push_back(input.narrow(0, first, count));
  }
  some.labels = samples.labels.narrow(0, first, count);
  return some;
}

}  // namespace frazil
