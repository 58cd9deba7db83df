#include "exec/models/parametric_operations.h"

#include <ATen/ATen.h>
#include <ATen/ExpandUtils.h>
#include <ATen/autocast_mode.h>

#include <array>
#include <tuple>
#include <utility>

namespace frazil {
namespace {

// Computes what autograd does after at::linear: the gradients of weight and bias over rows, the
// weight's as one product, in the type of the operation and then in that of the parameters. Returns
// an empty function where at::linear does not itself work on rows.
std::function<Tensors(const at::Tensor&)> differentiate_linear(const at::Tensor& x,
                                                               at::ScalarType parameters) {
  if (x.dim() > 2 && !x.is_contiguous()) return {};
  return [x, parameters](const at::Tensor& gradient) {
    const at::Tensor rows = gradient.reshape({-1, gradient.size(-1)});
    return Tensors{at::mm(rows.t(), x.reshape({-1, x.size(-1)})).to(parameters),
                   at::sum_to(rows, at::IntArrayRef(rows.size(1))).to(parameters)};
  };
}

// Casts what at::linear would cast under autocast, so that what is kept for W is what it read.
at::Tensor cast_as_linear(const at::Tensor& x) {
  const at::DeviceType device = x.device().type();
  if (!at::autocast::is_autocast_enabled(device)) return x;
  return at::autocast::cached_cast(at::autocast::get_autocast_dtype(device), x, device);
}

}  // namespace

at::Tensor ParametricOperations::linear(const at::Tensor& x, std::size_t weight,
                                        std::size_t bias) const {
  const at::Tensor read = cast_as_linear(x);
  at::Tensor output = at::linear(read, parameters_[weight], parameters_[bias]);
  if (listener_ != nullptr) {
    listener_->push_back(
        {output, {weight, bias}, differentiate_linear(read, parameters_[weight].scalar_type())});
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
  // Autocast may have normalized in a wider type. The results are captured by new names, because a
  // lambda cannot take structured bindings as they are.
  const auto differentiate = [x = x.to(output.scalar_type()), scale, shift, mean = mean,
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
