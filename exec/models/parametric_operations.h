#pragma once
// ParametricOperations are the operations of a layer that read its parameters. Each tells a
// listener what it has put out. These outputs are the seams behind which only weight gradients are
// left to compute (exec/models/layer_graph.h).

#include <cstddef>
#include <functional>
#include <vector>

#include "exec/tensors/tensors.h"

namespace frazil {

struct ParametricOperation {
  at::Tensor output;
  std::vector<std::size_t> parameters;  // indices in the layer
  // Returns the gradients of the parameters, given that of the output. They have the bits of
  // autograd, but its engine, which costs more than the arithmetic of a small layer, does not run.
  // Empty if only the engine can compute them.
  std::function<Tensors(const at::Tensor&)> differentiate;
};
using ParametricOperationList = std::vector<ParametricOperation>;

// Arguments name parameters by their index in the layer. Requires: the operations of a layer
// together read each parameter once.
class ParametricOperations {
 public:
  ParametricOperations(const Tensors& parameters, ParametricOperationList* listener)
      : parameters_(parameters), listener_(listener) {}

  at::Tensor linear(const at::Tensor& x, std::size_t weight, std::size_t bias) const;
  // Normalizes over the last dimension.
  at::Tensor layer_norm(const at::Tensor& x, std::size_t weight, std::size_t bias,
                        double epsilon) const;

 private:
  const Tensors& parameters_;
  ParametricOperationList* listener_;
};

}  // namespace frazil
