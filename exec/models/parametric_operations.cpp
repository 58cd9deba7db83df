#include "exec/models/parametric_operations.h"

#include <ATen/ATen.h>
#include <ATen/ExpandUtils.h>

#include <array>
#include <tuple>
#include <utility>

namespace frazil {
namespace {

// Computes what autograd does after at::linear: the gradients of weight and bias over rows, the
// weight's as one product. Returns an empty function where at::linear does not itself work on rows.
std::function<Tensors(const at::Tensor&)> differentiate_linear(const at::Tensor& x) {
  if (x.dim() > 2 && !x.is_contiguous()) return {};
  return [x](const at::Tensor& gradient) {
    const at::Tensor rows = gradient.reshape({-1, gradient.size(-1)});
    return Tensors{at::mm(rows.t(), x.reshape({-1, x.size(-1)})),
                   at::sum_to(rows, at::IntArrayRef(rows.size(1)))};
  };
}

}  // namespace

at::Tensor ParametricOperations::linear(const at::Tensor& x, std::size_t weight,
                                        std::size_t bias) const {
  at::Tensor output = at::linear(x, parameters_[weight], parameters_[bias]);
  if (listener_ != nullptr) {
    listener_->push_back({output, {weight, bias}, differentiate_linear(x)});
  }
  return output;
}

at::Tensor ParametricOperations::layer_norm(const at::Tensor& x, std::size_t weight,
                                            std::size_t bias, double epsilon) const {
  const at::Tensor& scale = parameters_[weight];
  const at::Tensor& shift = parameters_[bias];
  const auto [output, mean, deviation] =
      at::native_layer_norm(x, scale.sizes(), scale, shift, epsilon);
  if (listener_ == nullptr) return output;
  // The results are captured by new names, because a lambda cannot take structured bindings as they
  // are.
  const auto differentiate = [x, scale, shift, mean = mean,
                              deviation = deviation](const at::Tensor& gradient) {
    auto [of_x, of_scale, of_shift] =
        at::native_layer_norm_backward(gradient, x, scale.sizes(), mean, deviation, scale, shift,
                                       std::array<bool, 3>{false, true, true});
    return Tensors{std::move(of_scale), std::move(of_shift)};
  };
  listener_->push_back({output, {weight, bias}, differentiate});
  return output;
}

}  // namespace frazil
