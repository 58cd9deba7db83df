#pragma once
// The operations of a layer that read its parameters. Each tells a listener what it has put out:
// the seams behind which the weight gradients alone are left (exec/models/layer_graph.h).

#include <cstddef>
#include <functional>
#include <vector>

#include "exec/tensors/tensors.h"

namespace frazil {

struct ParametricOperation {
  at::Tensor output;
  std::vector<std::size_t> parameters;  // by their index in the layer
  // Their gradients, from the output's, in the bits of autograd and without its engine, which costs
  // more than the arithmetic of a small layer. Empty where only the engine knows.
  std::function<Tensors(const at::Tensor&)> differentiate;
};
using ParametricOperationList = std::vector<ParametricOperation>;

// Arguments name parameters by their index. Together the operations of a layer read each parameter
// once.
class ParametricOperations {
 public:
  ParametricOperations(const Tensors& parameters, ParametricOperationList* listener)
      : parameters_(parameters), listener_(listener) {}

  at::Tensor linear(const at::Tensor& x, std::size_t weight, std::size_t bias) const;
  at::Tensor linear_without_bias(const at::Tensor& x, std::size_t weight) const;
  // Over the last dimension.
  at::Tensor layer_norm(const at::Tensor& x, std::size_t weight, std::size_t bias,
                        double epsilon) const;
  at::Tensor convolution(const at::Tensor& x, std::size_t weight, std::size_t bias, int stride,
                         int padding) const;

 private:
  const Tensors& parameters_;
  ParametricOperationList* listener_;
};

}  // namespace frazil
