#include "exec/parametric_operations.h"

#include <ATen/ATen.h>

namespace frazil {

at::Tensor ParametricOperations::linear(const at::Tensor& x, std::size_t weight,
                                        std::size_t bias) const {
  return report(at::linear(x, parameters_[weight], parameters_[bias]), {weight, bias});
}

at::Tensor ParametricOperations::linear_without_bias(const at::Tensor& x,
                                                     std::size_t weight) const {
  return report(at::linear(x, parameters_[weight]), {weight});
}

at::Tensor ParametricOperations::layer_norm(const at::Tensor& x, std::size_t weight,
                                            std::size_t bias, double epsilon) const {
  const at::Tensor& scale = parameters_[weight];
  return report(at::layer_norm(x, scale.sizes(), scale, parameters_[bias], epsilon),
                {weight, bias});
}

at::Tensor ParametricOperations::convolution(const at::Tensor& x, std::size_t weight,
                                             std::size_t bias, int stride, int padding) const {
  return report(
      at::conv2d(x, parameters_[weight], parameters_[bias], {stride, stride}, {padding, padding}),
      {weight, bias});
}

at::Tensor ParametricOperations::report(at::Tensor output,
                                        std::vector<std::size_t> parameters) const {
  if (listener_ != nullptr) listener_->push_back({output, std::move(parameters)});
  return output;
}

}  // namespace frazil
