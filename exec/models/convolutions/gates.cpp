#include "exec/models/convolutions/gates.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

namespace frazil {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

at::Tensor gate_gradient(const at::Tensor& gradient, const at::Tensor& output) {
  if (!output.defined()) return at::zeros({}, gradient.options().dtype(at::kFloat));
  return (gradient.to(at::kFloat) * output.to(at::kFloat)).sum();
}

struct GateFunction : torch::autograd::Function<GateFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& output,
                            const at::Tensor& /*probabilities*/, const Tensors* outputs) {
    context->save_for_backward(*outputs);
    return output;
  }

  // Returns a gradient for each argument of forward.
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const at::Tensor& gradient = gradients.at(0);
    if (!gradient.defined()) return {at::Tensor(), at::Tensor(), at::Tensor()};
    Tensors of_gates;
    for (const at::Tensor& output : context->get_saved_variables()) {
      of_gates.push_back(gate_gradient(gradient, output));
    }
    return {gradient, at::stack(of_gates), at::Tensor()};
  }
};

}  // namespace

at::Tensor pass_gates(const at::Tensor& output, const at::Tensor& probabilities,
                      const Tensors& outputs) {
  return GateFunction::apply(output, probabilities, &outputs);
}

}  // namespace frazil
