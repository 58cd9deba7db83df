#include "tests/bench/steps/direct_training.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>

#include <utility>

#include "exec/state/optimizer.h"

namespace frazil {
namespace {

void add(Tensors& sum, Tensors gradients) {
  const c10::NoGradGuard no_grad;
  if (sum.empty()) {
    sum = std::move(gradients);
    return;
  }
  for (std::size_t i = 0; i < sum.size(); ++i) {
    // Autograd may hand out one storage as the gradients of two parameters.
    if (sum[i].storage().use_count() == 1) {
      sum[i].add_(gradients[i]);
    } else {
      sum[i] = at::add(sum[i], gradients[i]);
    }
  }
}

}  // namespace

DirectTraining::DirectTraining(ModelSpec model, OptimizerConfig optimizer, std::uint64_t seed)
    : model_(std::move(model)), optimizer_(optimizer), sums_(model_.layers.size()) {
  for (std::size_t l = 0; l < model_.layers.size(); ++l) {
    states_.push_back(make_initial_state(model_, LayerId{l}, seed));
  }
}

double DirectTraining::step(const std::vector<Samples>& micro_batches, bool all_forwards_first,
                            double learning_rate) {
  double loss = 0;
  std::vector<SavedMicroBatch> saved(micro_batches.size());
  for (std::size_t m = 0; m < micro_batches.size(); ++m) {
    loss += forward(micro_batches[m], micro_batches.size(), saved[m]);
    if (!all_forwards_first) backward(saved[m]);
  }
  if (all_forwards_first) {
    for (SavedMicroBatch& one : saved) backward(one);
  }
  for (std::size_t l = 0; l < states_.size(); ++l) {
    update_layer(states_[l], sums_[l], optimizer_, learning_rate);
    sums_[l].clear();
  }
  return loss;
}

double DirectTraining::forward(const Samples& samples, std::size_t parts, SavedMicroBatch& saved) {
  saved.reserve(states_.size());
  at::Tensor x = samples.inputs[0];
  for (std::size_t l = 0; l < states_.size(); ++l) {
    const at::Tensor input = x.detach().set_requires_grad(l > 0);
    x = model_.layers[l].forward({LayerId{l}, states_[l].parameters, {input}, {}, true}).at(0);
    saved.push_back({input, x});
  }
  const at::Tensor loss = model_.layers.back().loss({x}, samples.labels);
  saved.back().output = loss * (1.0 / static_cast<double>(parts));
  return saved.back().output.item<double>();
}

void DirectTraining::backward(SavedMicroBatch& saved) {
  at::Tensor gradient;
  for (std::size_t l = states_.size(); l-- > 0;) {
    Tensors leaves;
    if (l > 0) leaves.push_back(saved[l].input);
    leaves.insert(leaves.end(), states_[l].parameters.begin(), states_[l].parameters.end());
    Tensors gradients = torch::autograd::grad({saved[l].output}, leaves, {gradient});
    if (l > 0) {
      gradient = std::move(gradients.front());
      gradients.erase(gradients.begin());
    }
    add(sums_[l], std::move(gradients));
    saved.pop_back();
  }
}

}  // namespace frazil
