#include "exec/models/layer_graph.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/variable.h>

#include <iterator>

#include "profiles/error.h"

namespace frazil {

using torch::autograd::edge_list;

LayerGraph::LayerGraph(const ModelSpec& model, LayerId layer, const Tensors& parameters,
                       const LayerActivity& activity, const Call& call)
    : layer_(layer), activity_(activity) {
  const LayerSpec& spec = model.layers[layer.index()];
  const c10::AutoGradMode grad_mode(activity.input_gradient || activity.weight_gradient);
  inputs_.reserve(call.inputs.size());
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    const bool wanted = activity.input_gradient && call.carries[i];
    inputs_.push_back(call.inputs[i].detach().set_requires_grad(wanted));
  }
  const bool has_seams =
      call.splits && spec.has_seams && activity.input_gradient && activity.weight_gradient;
  ParametricOperationList operations;
  outputs_ =
      spec.forward({layer, parameters, inputs_, call.key, activity.trains,
                    has_seams ? &operations : nullptr, call.statistics, call.batch_statistics});
  std::vector<std::optional<std::size_t>> place_of(parameters.size());
  for (std::size_t p = 0; activity.weight_gradient && p < parameters.size(); ++p) {
    if (!parameters[p].requires_grad()) continue;
    place_of[p] = parameters_.size();
    parameters_.push_back(parameters[p]);
  }
  for (std::size_t o = 0; o < outputs_.size(); ++o) {
    if (!outputs_[o].requires_grad()) continue;
    roots_.push_back(seam_of(outputs_[o]));
    root_output_.push_back(o);
  }
  for (ParametricOperation& operation : operations) add_operation(operation, place_of);
}

// An operation knows the gradients of all its parameters alone; where some of them do not train,
// the engine computes those of the others.
void LayerGraph::add_operation(ParametricOperation& operation,
                               const std::vector<std::optional<std::size_t>>& place_of) {
  std::vector<std::size_t> places;
  for (const std::size_t p : operation.parameters) {
    if (place_of[p]) places.push_back(*place_of[p]);
  }
  if (places.empty()) return;
  operations_.push_back(seam_of(operation.output));
  if (places.size() == operation.parameters.size()) {
    operations_.back().differentiate = std::move(operation.differentiate);
  }
  operations_.back().parameters = std::move(places);
}

LayerGraph::Seam LayerGraph::seam_of(const at::Tensor& tensor) {
  torch::autograd::Edge edge = torch::autograd::impl::gradient_edge(tensor);
  return {std::move(edge.function), edge.input_nr};
}

void LayerGraph::add_loss(const at::Tensor& loss) {
  ENSURE(loss.dim() == 0, "a loss is one number");
  if (!loss.requires_grad()) return;
  roots_.push_back(seam_of(loss));
}

void LayerGraph::set_root_gradients(const Tensors& gradients) {
  for (std::size_t r = 0; r < root_output_.size(); ++r) {
    const std::size_t o = root_output_[r];
    if (o < gradients.size()) roots_[r].gradient = gradients[o];
  }
  for (std::size_t r = root_output_.size(); r < roots_.size(); ++r) {
    roots_[r].gradient = at::ones({}, inputs_.at(0).options().dtype(at::kFloat));
  }
}

// A step may move nothing of a layer, whose outputs then depend on no leaf: there are no roots.
Tensors LayerGraph::run(const std::vector<Seam>& roots, const Tensors& leaves,
                        const std::vector<Seam>& seams, bool keeps) {
  edge_list from;
  Tensors gradients;
  for (const Seam& root : roots) {
    if (!root.gradient.defined()) continue;
    from.emplace_back(root.node, root.output);
    gradients.push_back(root.gradient);
  }
  ENSURE(roots.empty() || !from.empty(), "a backward begins with a gradient");
  edge_list to;
  for (const at::Tensor& leaf : leaves) to.push_back(torch::autograd::impl::gradient_edge(leaf));
  for (const Seam& seam : seams) to.emplace_back(seam.node, seam.output);
  Tensors found(to.size());
  if (!from.empty()) {
    found = torch::autograd::Engine::get_default_engine().execute(
        from, gradients, keeps, /*create_graph=*/false, /*accumulate_grad=*/false, to);
  }
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    if (!found[i].defined()) found[i] = at::zeros_like(leaves[i]);
  }
  return found;
}

Tensors LayerGraph::carrying_inputs() const {
  Tensors carrying;
  for (const at::Tensor& input : inputs_) {
    if (input.requires_grad()) carrying.push_back(input);
  }
  return carrying;
}

Tensors LayerGraph::spread_over_inputs(Tensors::iterator found) const {
  Tensors gradients(inputs_.size());
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i].requires_grad()) gradients[i] = std::move(*found++);
  }
  return gradients;
}

LayerGraph::Gradients LayerGraph::backward(const Tensors& gradients) {
  set_root_gradients(gradients);
  Tensors leaves = carrying_inputs();
  const auto inputs = static_cast<std::ptrdiff_t>(leaves.size());
  leaves.insert(leaves.end(), parameters_.begin(), parameters_.end());
  Tensors found = run(roots_, leaves, {}, /*keeps=*/false);
  return {spread_over_inputs(found.begin()),
          Tensors(std::make_move_iterator(found.begin() + inputs),
                  std::make_move_iterator(found.end()))};
}

Tensors LayerGraph::backward_input(const Tensors& gradients) {
  set_root_gradients(gradients);
  Tensors input_gradients(inputs_.size());
  if (activity_.input_gradient) {
    const Tensors leaves = carrying_inputs();
    Tensors found = run(roots_, leaves, operations_, /*keeps=*/activity_.weight_gradient);
    for (std::size_t i = 0; i < operations_.size(); ++i) {
      operations_[i].gradient = std::move(found[leaves.size() + i]);
    }
    input_gradients = spread_over_inputs(found.begin());
    inputs_.clear();
  }
  // W begins at the seams, if there are any, and does not need the roots.
  if (!operations_.empty()) roots_.clear();
  return input_gradients;
}

Tensors LayerGraph::differentiate(const Seam& operation) const {
  Tensors own;
  for (const std::size_t p : operation.parameters) own.push_back(parameters_[p]);
  if (!operation.gradient.defined()) {  // no gradient that has come reaches the operation
    for (at::Tensor& parameter : own) parameter = at::zeros_like(parameter);
    return own;
  }
  if (!operation.differentiate) return run({operation}, own, {}, /*keeps=*/false);
  const c10::NoGradGuard no_grad;
  return operation.differentiate(operation.gradient);
}

Tensors LayerGraph::backward_weight() {
  if (operations_.empty()) return run(roots_, parameters_, {}, /*keeps=*/false);
  Tensors gradients(parameters_.size());
  for (Seam& operation : operations_) {
    Tensors found = differentiate(operation);
    for (std::size_t i = 0; i < found.size(); ++i) {
      at::Tensor& gradient = gradients[operation.parameters[i]];
      ENSURE(!gradient.defined(), "one operation reads a parameter");
      gradient = std::move(found[i]);
    }
    operation = Seam();
  }
  for (std::size_t p = 0; p < gradients.size(); ++p) {
    if (!gradients[p].defined()) gradients[p] = at::zeros_like(parameters_[p]);
  }
  return gradients;
}

}  // namespace frazil
