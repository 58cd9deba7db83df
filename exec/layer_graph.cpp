#include "exec/layer_graph.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/variable.h>

#include "profiles/error.h"

namespace frazil {
namespace {

using GraphEdge = torch::autograd::Edge;
using torch::autograd::edge_list;

// The gradients at `leaves`, given that of `root`. `keeps`: the graph will be run through again.
std::vector<at::Tensor> run_graph(const GraphEdge& root, const at::Tensor& gradient,
                                  const edge_list& leaves, bool keeps) {
  return torch::autograd::Engine::get_default_engine().execute(
      {root}, {gradient}, keeps, /*create_graph=*/false, /*accumulate_grad=*/false, leaves);
}

GraphEdge edge_of(const at::Tensor& tensor) { return torch::autograd::impl::gradient_edge(tensor); }

}  // namespace

LayerGraph::LayerGraph(const ModelSpec& model, LayerId layer,
                       const std::vector<at::Tensor>& parameters, const LayerActivity& activity,
                       const at::Tensor& input, const RandomKey& key, bool splits)
    : layer_(layer), activity_(activity) {
  const bool needs_backward = activity.input_gradient || activity.weight_gradient;
  const c10::AutoGradMode grad_mode(needs_backward);
  input_ = input.detach().set_requires_grad(activity.input_gradient);
  const bool has_seams = splits && activity.input_gradient && activity.weight_gradient;
  ParametricOperations operations;
  output_ = forward_layer(model, layer, parameters, input_, key, activity.active,
                          has_seams ? &operations : nullptr);
  if (activity.weight_gradient) parameters_ = parameters;
  for (ParametricOperation& operation : operations) {
    const GraphEdge seam = edge_of(operation.output);
    operations_.push_back(
        {seam.function, seam.input_nr, std::move(operation.parameters), at::Tensor()});
  }
}

at::Tensor LayerGraph::root_gradient(const at::Tensor& gradient) const {
  return gradient.defined() ? gradient : at::ones_like(output_);
}

LayerGraph::Gradients LayerGraph::backward(const at::Tensor& gradient) {
  edge_list leaves;
  if (activity_.input_gradient) leaves.push_back(edge_of(input_));
  if (activity_.weight_gradient) {
    for (const at::Tensor& parameter : parameters_) leaves.push_back(edge_of(parameter));
  }
  std::vector<at::Tensor> found =
      run_graph(edge_of(output_), root_gradient(gradient), leaves, /*keeps=*/false);
  Gradients gradients;
  auto first_weight = found.begin();
  if (activity_.input_gradient) gradients.input = std::move(*first_weight++);
  gradients.weights.assign(std::make_move_iterator(first_weight),
                           std::make_move_iterator(found.end()));
  return gradients;
}

at::Tensor LayerGraph::backward_input(const at::Tensor& gradient) {
  const at::Tensor root = root_gradient(gradient);
  at::Tensor input_gradient;
  if (activity_.input_gradient) {
    edge_list leaves{edge_of(input_)};
    for (const Operation& operation : operations_) {
      leaves.emplace_back(operation.node, operation.output);
    }
    std::vector<at::Tensor> found =
        run_graph(edge_of(output_), root, leaves, /*keeps=*/activity_.weight_gradient);
    input_gradient = std::move(found.front());
    for (std::size_t i = 0; i < operations_.size(); ++i) {
      operations_[i].gradient = std::move(found[i + 1]);
    }
    input_ = at::Tensor();
  }
  // With seams nothing behind the last of them is needed any more.
  if (operations_.empty()) {
    held_ = root;
  } else {
    output_ = at::Tensor();
  }
  return input_gradient;
}

std::vector<at::Tensor> LayerGraph::backward_weight() {
  const auto run = [](const GraphEdge& root, const at::Tensor& gradient,
                      const std::vector<at::Tensor>& parameters) {
    edge_list leaves;
    for (const at::Tensor& parameter : parameters) leaves.push_back(edge_of(parameter));
    return run_graph(root, gradient, leaves, /*keeps=*/false);
  };
  if (operations_.empty()) return run(edge_of(output_), held_, parameters_);
  std::vector<at::Tensor> gradients(parameters_.size());
  for (Operation& operation : operations_) {
    std::vector<at::Tensor> own;
    for (const std::size_t p : operation.parameters) own.push_back(parameters_[p]);
    std::vector<at::Tensor> found =
        run(GraphEdge(operation.node, operation.output), operation.gradient, own);
    for (std::size_t i = 0; i < own.size(); ++i) {
      gradients[operation.parameters[i]] = std::move(found[i]);
    }
    operation = Operation();
  }
  return gradients;
}

}  // namespace frazil
