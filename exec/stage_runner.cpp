#include "exec/stage_runner.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <algorithm>

#include "profiles/error.h"

namespace frazil {
namespace {

void spin_until(SteadyTime end) {
  while (std::chrono::steady_clock::now() < end) {
  }
}

}  // namespace

StageRunner::StageRunner(const ModelSpec& model, StageWork work, const Activity& activity,
                         DeviceState& state, GradientTrees& gradients, Recorder& recorder,
                         const Measurement& measurement)
    : model_(model),
      work_(work),
      activity_(activity),
      state_(state),
      gradients_(gradients),
      recorder_(recorder),
      measurement_(measurement) {}

bool StageRunner::has_backward() const {
  for (LayerId l = work_.layers.first; l <= work_.layers.last; ++l.value) {
    if (activity_.backward(l)) return true;
  }
  return false;
}

at::Tensor StageRunner::forward(MicroBatchId micro_batch, const at::Tensor& input,
                                const RandomKey& key, const OldWeights& weights) {
  SavedMicroBatch saved;
  saved.samples = static_cast<int>(input.size(0));
  run_layers(saved, input, key, /*keeps=*/!work_.recomputes, weights);
  const at::Tensor output = saved.output.detach();
  if (has_backward() || model_.has_loss(work_.layers.last)) {
    if (work_.recomputes) {
      saved.input = input;
      saved.key = key;
    }
    ENSURE(saved_.emplace(micro_batch, std::move(saved)).second, "a micro-batch is forwarded once");
  }
  return output;
}

void StageRunner::recompute(MicroBatchId micro_batch) {
  SavedMicroBatch& saved = saved_.at(micro_batch);
  ENSURE(work_.recomputes && saved.layers.empty(), "R follows its F, once");
  const at::Tensor input = std::move(saved.input);
  run_layers(saved, input, saved.key, /*keeps=*/true, {});
}

void StageRunner::run_layers(SavedMicroBatch& saved, const at::Tensor& input, const RandomKey& key,
                             bool keeps, const OldWeights& weights) {
  at::Tensor x = input;
  for (LayerId l = work_.layers.first; l <= work_.layers.last; ++l.value) {
    const SteadyTime start = recorder_.now();
    LayerActivity activity = activity_.layers[l.index()];
    if (!keeps) activity.input_gradient = activity.weight_gradient = false;
    const auto old = weights.find(l);
    const Tensors& parameters = old == weights.end() ? state_.at(l).parameters : old->second;
    LayerGraph layer(model_, l, parameters, activity, x, key, work_.splits);
    x = layer.output();
    if (keeps && activity_.backward(l)) saved.layers.push_back(std::move(layer));
    finish_phase(l, LayerPhase::kForward, saved.samples, start);
  }
  saved.output = x;
}

double StageRunner::set_loss(MicroBatchId micro_batch, const at::Tensor& labels, double scale) {
  const SteadyTime start = recorder_.now();
  SavedMicroBatch& saved = saved_.at(micro_batch);
  const int samples = saved.samples;
  const c10::AutoGradMode grad_mode(!saved.layers.empty());
  const at::Tensor loss = scaled_loss(saved.output, labels, scale);
  const double value = loss.item<double>();
  saved.output = at::Tensor();
  if (!saved.layers.empty()) {
    saved.layers.back().end_with(loss);
  } else if (!has_backward()) {
    saved_.erase(micro_batch);
  }
  finish_phase(work_.layers.last, LayerPhase::kLoss, samples, start);
  return value;
}

StageRunner::SavedMicroBatch StageRunner::take(MicroBatchId micro_batch) {
  const auto found = saved_.find(micro_batch);
  ENSURE(found != saved_.end(), "a backward follows its forward");
  SavedMicroBatch saved = std::move(found->second);
  saved_.erase(found);
  saved.output = at::Tensor();
  return saved;
}

// One memory order for every owner: what is summed over a tensor must not depend on strides.
void StageRunner::add_gradients(MicroBatchId micro_batch, LayerId layer, Tensors gradients) {
  if (gradients.empty()) return;
  for (at::Tensor& gradient : gradients) gradient = gradient.contiguous();
  gradients_.at(layer).add({micro_batch.value, micro_batch.value + 1}, std::move(gradients));
}

at::Tensor StageRunner::backward(MicroBatchId micro_batch, at::Tensor gradient) {
  SavedMicroBatch saved = take(micro_batch);
  while (!saved.layers.empty()) {
    LayerGraph layer = std::move(saved.layers.back());
    saved.layers.pop_back();
    const SteadyTime start = recorder_.now();
    LayerGraph::Gradients gradients = layer.backward(gradient);
    gradient = std::move(gradients.input);
    add_gradients(micro_batch, layer.layer(), std::move(gradients.weights));
    finish_phase(layer.layer(), LayerPhase::kBackward, saved.samples, start);
  }
  return gradient;
}

at::Tensor StageRunner::backward_input(MicroBatchId micro_batch, at::Tensor gradient) {
  SavedMicroBatch saved = take(micro_batch);
  for (auto layer = saved.layers.rbegin(); layer != saved.layers.rend(); ++layer) {
    const SteadyTime start = recorder_.now();
    gradient = layer->backward_input(gradient);
    finish_phase(layer->layer(), LayerPhase::kBackwardInput, saved.samples, start);
  }
  std::erase_if(saved.layers, [](const LayerGraph& layer) { return !layer.owes_weights(); });
  saved.is_halved = true;
  if (!saved.layers.empty()) saved_.emplace(micro_batch, std::move(saved));
  return gradient;
}

bool StageRunner::has_halves(MicroBatchId micro_batch) const {
  const auto found = saved_.find(micro_batch);
  return found != saved_.end() && found->second.is_halved;
}

void StageRunner::backward_weight(MicroBatchId micro_batch, const at::Tensor& gradient) {
  if (!has_halves(micro_batch)) {
    backward(micro_batch, gradient);
    return;
  }
  SavedMicroBatch saved = take(micro_batch);
  while (!saved.layers.empty()) {
    LayerGraph layer = std::move(saved.layers.back());
    saved.layers.pop_back();
    const SteadyTime start = recorder_.now();
    add_gradients(micro_batch, layer.layer(), layer.backward_weight());
    finish_phase(layer.layer(), LayerPhase::kBackwardWeight, saved.samples, start);
  }
}

at::Tensor StageRunner::backward_apart(MicroBatchId micro_batch, at::Tensor gradient) {
  SavedMicroBatch saved = take(micro_batch);
  while (!saved.layers.empty()) {
    LayerGraph layer = std::move(saved.layers.back());
    saved.layers.pop_back();
    SteadyTime start = recorder_.now();
    const LayerActivity& activity = activity_.layers[layer.layer().index()];
    if (!activity.input_gradient || !activity.weight_gradient) {
      LayerGraph::Gradients gradients = layer.backward(gradient);
      gradient = std::move(gradients.input);
      add_gradients(micro_batch, layer.layer(), std::move(gradients.weights));
      continue;
    }
    gradient = layer.backward_input(gradient);
    finish_phase(layer.layer(), LayerPhase::kBackwardInput, saved.samples, start);
    start = recorder_.now();
    add_gradients(micro_batch, layer.layer(), layer.backward_weight());
    finish_phase(layer.layer(), LayerPhase::kBackwardWeightAlone, saved.samples, start);
  }
  return gradient;
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
