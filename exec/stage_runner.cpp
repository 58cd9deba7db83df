#include "exec/stage_runner.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>

#include "profiles/error.h"

namespace frazil {
namespace {

void spin_until(SteadyTime end) {
  while (std::chrono::steady_clock::now() < end) {
  }
}

}  // namespace

StageRunner::StageRunner(const ModelSpec& model, LayerRange layers, const Activity& activity,
                         DeviceState& state, GradientTrees& gradients, Recorder& recorder,
                         const Measurement& measurement)
    : model_(model),
      layers_(layers),
      activity_(activity),
      state_(state),
      gradients_(gradients),
      recorder_(recorder),
      measurement_(measurement) {}

at::Tensor StageRunner::forward(MicroBatchId micro_batch, const at::Tensor& input,
                                const RandomKey& key) {
  SavedMicroBatch saved;
  saved.samples = static_cast<int>(input.size(0));
  at::Tensor x = input;
  for (std::int32_t l = layers_.first.value; l <= layers_.last.value; ++l) {
    x = run_layer(LayerId{l}, x, key, saved);
  }
  saved.output = x;
  const bool has_loss = model_.has_loss(layers_.last);
  if (!saved.layers.empty() || has_loss) {
    ENSURE(saved_.emplace(micro_batch, std::move(saved)).second, "a micro-batch is forwarded once");
  }
  return x.detach();
}

at::Tensor StageRunner::run_layer(LayerId layer, const at::Tensor& input, const RandomKey& key,
                                  SavedMicroBatch& saved) {
  const SteadyTime start = recorder_.now();
  const LayerState& state = state_.at(layer);
  const LayerActivity& activity = activity_.layers[layer.index()];
  const bool needs_backward = activity_.backward(layer);
  const c10::AutoGradMode grad_mode(needs_backward);
  const at::Tensor x = input.detach().set_requires_grad(activity.input_gradient);
  at::Tensor output =
      forward_layer(model_, layer, state.parameters, x, key, /*training=*/activity.active);
  if (needs_backward) saved.layers.push_back({layer, x, output});
  finish_phase(layer, LayerPhase::kForward, saved.samples, start);
  return output;
}

double StageRunner::set_loss(MicroBatchId micro_batch, const at::Tensor& labels, double scale) {
  const SteadyTime start = recorder_.now();
  SavedMicroBatch& saved = saved_.at(micro_batch);
  const int samples = saved.samples;
  const c10::AutoGradMode grad_mode(!saved.layers.empty());
  const at::Tensor loss = scaled_loss(saved.output, labels, scale);
  const double value = loss.item<double>();
  if (saved.layers.empty()) {
    saved_.erase(micro_batch);
  } else {
    saved.layers.back().output = loss;
    saved.output = at::Tensor();
  }
  finish_phase(layers_.last, LayerPhase::kLoss, samples, start);
  return value;
}

at::Tensor StageRunner::backward(MicroBatchId micro_batch, at::Tensor gradient, bool split) {
  const auto found = saved_.find(micro_batch);
  ENSURE(found != saved_.end(), "a backward follows its forward");
  SavedMicroBatch saved = std::move(found->second);
  saved_.erase(found);
  saved.output = at::Tensor();
  while (!saved.layers.empty()) {
    const SavedLayer layer = std::move(saved.layers.back());
    saved.layers.pop_back();
    const SteadyTime start = recorder_.now();
    Tensors weight_gradients;
    gradient = run_backward(layer, gradient, saved.samples, split, weight_gradients);
    // One memory order for every owner: what is summed over a tensor must not depend on strides.
    for (at::Tensor& weight_gradient : weight_gradients) {
      weight_gradient = weight_gradient.contiguous();
    }
    if (!weight_gradients.empty()) {
      gradients_.at(layer.layer)
          .add({micro_batch.value, micro_batch.value + 1}, std::move(weight_gradients));
    }
    if (!split) finish_phase(layer.layer, LayerPhase::kBackward, saved.samples, start);
  }
  return gradient;
}

at::Tensor StageRunner::run_backward(const SavedLayer& saved, const at::Tensor& gradient,
                                     int samples, bool split, Tensors& weight_gradients) {
  const LayerActivity& activity = activity_.layers[saved.layer.index()];
  const Tensors roots{saved.output};
  const Tensors root_gradients{gradient};
  Tensors leaves;
  if (activity.input_gradient) leaves.push_back(saved.input);
  if (split && activity.input_gradient && activity.weight_gradient) {
    const LayerState& state = state_.at(saved.layer);
    SteadyTime start = recorder_.now();
    const Tensors input_gradient =
        torch::autograd::grad(roots, leaves, root_gradients, /*retain_graph=*/true);
    finish_phase(saved.layer, LayerPhase::kBackwardInput, samples, start);
    start = recorder_.now();
    weight_gradients = torch::autograd::grad(roots, state.parameters, root_gradients);
    finish_phase(saved.layer, LayerPhase::kBackwardWeightAlone, samples, start);
    return input_gradient[0];
  }
  if (activity.weight_gradient) {
    const Tensors& parameters = state_.at(saved.layer).parameters;
    leaves.insert(leaves.end(), parameters.begin(), parameters.end());
  }
  Tensors gradients = torch::autograd::grad(roots, leaves, root_gradients);
  at::Tensor input_gradient;
  auto first_weight = gradients.begin();
  if (activity.input_gradient) input_gradient = std::move(*first_weight++);
  weight_gradients.assign(std::make_move_iterator(first_weight),
                          std::make_move_iterator(gradients.end()));
  return input_gradient;
}

void StageRunner::finish_phase(LayerId layer, LayerPhase phase, int samples, SteadyTime start) {
  if (measurement_.slow_layer == layer.value) {
    const auto elapsed = recorder_.now() - start;
    spin_until(start + elapsed + elapsed * measurement_.slow_percent / 100);
  }
  if (!measurement_.layers) return;
  recorder_.add_layer(
      {layer, phase, samples, std::chrono::duration_cast<Duration>(recorder_.now() - start)});
}

}  // namespace frazil
