#include "exec/models/linear_without_bias.h"

#include <ATen/ATen.h>

namespace frazil {

at::Tensor linear_without_bias(const LayerCall& call, const at::Tensor& x, std::size_t weight) {
  at::Tensor output = at::linear(x, call.parameters[weight]);
  if (call.operations != nullptr) {
    const at::ScalarType type = call.parameters[weight].scalar_type();
    const auto differentiate = [x = x.to(output.scalar_type()), type](const at::Tensor& gradient) {
      const at::Tensor rows = gradient.reshape({-1, gradient.size(-1)});
      return Tensors{at::mm(rows.t(), x.reshape({-1, x.size(-1)})).to(type)};
    };
    call.operations->push_back({output, {weight}, differentiate});
  }
  return output;
}

}  // namespace frazil
