#pragma once
// An operation of the test models that the product's models do not have.

#include <ATen/ATen.h>

#include "exec/models/model.h"
#include "exec/models/parametric_operations.h"

namespace frazil {

// Works as ParametricOperations::linear does, for a layer that has a weight alone. Requires: `x` is
// contiguous.
inline at::Tensor linear_without_bias(const LayerCall& call, const at::Tensor& x,
                                      std::size_t weight) {
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
