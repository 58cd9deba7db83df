#include "exec/run/gradient_signals.h"

#include <ATen/ATen.h>

namespace frazil {

at::Tensor sum_of_squares(const at::Tensor& gradient) {
  return gradient.to(at::kDouble).square().sum();
}

double sum_squares(const Tensors& gradients) {
  double sum = 0;
  for (const at::Tensor& gradient : gradients) {
    sum += sum_of_squares(gradient).item<double>();
  }
  return sum;
}

void add_to_sums(LayerState& state, const Tensors& gradients) {
  const bool is_first = state.gradient_sums.empty();
  for (std::size_t p = 0; p < gradients.size(); ++p) {
    if (is_first) {
      state.gradient_sums.push_back(gradients[p].clone());
    } else {
      state.gradient_sums[p].add_(gradients[p]);
    }
  }
}

}  // namespace frazil
