#include "exec/stage_runner.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "exec/stash_meter.h"
#include "exec/tensor_bytes.h"
#include "profiles/error.h"

namespace frazil {
namespace {

void spin_until(SteadyTime end) {
  while (std::chrono::steady_clock::now() < end) {
  }
}

int count_of(const Samples* samples) { return static_cast<int>(samples->count()); }

}  // namespace

StageRunner::StageRunner(const ModelSpec& model, StageWork work, const Activity& activity,
                         DeviceState& state, AddGradients add_gradients, Recorder& recorder,
                         const Measurement& measurement)
    : model_(model),
      work_(std::move(work)),
      activity_(activity),
      state_(state),
      add_gradients_(std::move(add_gradients)),
      recorder_(recorder),
      measurement_(measurement) {
  for (const LayerRange& range : work_.layers) {
    for (LayerId l = range.first; l <= range.last; ++l.value) {
      places_.push_back({.layer = l, .incoming = model.edges_into(l), .leaving = {}});
      has_backward_ = has_backward_ || activity.backward(l);
      reads_samples_ = reads_samples_ || places_.back().incoming.empty() || model.has_loss(l);
    }
  }
  place_of_.assign(model.layers.size(), places_.size());
  for (std::size_t i = 0; i < places_.size(); ++i) place_of_[places_[i].layer.index()] = i;
  for (Place& place : places_) {
    for (const std::size_t e : model.edges_from(place.layer)) {
      if (place_of_[model.edges[e].to.index()] == places_.size()) {
        place.leaving.push_back(e);
      } else {
        ++place.readers;
      }
    }
  }
}

const StageRunner::Place& StageRunner::place_of(LayerId layer) const {
  return places_.at(place_of_[layer.index()]);
}

StageRunner::Forwarded StageRunner::forward(MicroBatchId micro_batch, const Data& data,
                                            EdgeTensors inputs, const OldWeights& weights) {
  SavedMicroBatch saved{.data = data, .layers = {}, .brought = {}, .inputs = {}};
  if (reads_samples_) saved.brought = recorder_.compute().bring(*data.samples);
  if (saved.brought) saved.data.samples = saved.brought.get();
  if (work_.recomputes && has_backward_) {
    saved.inputs = inputs;
    saved.kept_inputs = count_kept(saved);
    recorder_.memory().change(MemoryKind::kStash, saved.kept_inputs);
  }
  Forwarded forwarded = run_layers(saved, std::move(inputs), /*keeps=*/!work_.recomputes, weights);
  if (has_backward_) {
    ENSURE(saved_.emplace(micro_batch, std::move(saved)).second, "a micro-batch is forwarded once");
  }
  return forwarded;
}

void StageRunner::recompute(MicroBatchId micro_batch) {
  SavedMicroBatch& saved = saved_.at(micro_batch);
  ENSURE(work_.recomputes && saved.layers.empty(), "R follows its F, once");
  recorder_.memory().change(MemoryKind::kStash, -saved.kept_inputs);
  run_layers(saved, std::exchange(saved.inputs, {}), /*keeps=*/true, {});
}

StageRunner::Forwarded StageRunner::run_layers(SavedMicroBatch& saved, EdgeTensors inputs,
                                               bool keeps, const OldWeights& weights) {
  Forwarded forwarded;
  std::vector<Tensors> outputs(places_.size());
  std::vector<int> readers(places_.size());
  for (std::size_t i = 0; i < places_.size(); ++i) {
    const Place& place = places_[i];
    const SteadyTime start = recorder_.now();
    LayerActivity activity = activity_.layers[place.layer.index()];
    if (!keeps) activity.input_gradient = activity.weight_gradient = false;
    const auto old = weights.find(place.layer);
    const Tensors& parameters =
        old == weights.end() ? state_.at(place.layer).parameters : old->second;
    const LayerGraph::Call call = make_call(place, saved.data, inputs, outputs, readers);
    std::optional<AllocationMeter> meter;
    if (recorder_.memory().is_open()) meter.emplace();
    LayerGraph layer(model_, place.layer, parameters, activity, call);
    outputs[i] = layer.take_outputs();
    readers[i] = place.readers;
    for (const std::size_t e : place.leaving) {
      Tensors& leaving = forwarded.outputs[e];
      for (const std::size_t o : model_.edges[e].outputs) {
        leaving.push_back(outputs[i].at(o).detach());
      }
    }
    finish_phase(place.layer, LayerPhase::kForward, count_of(saved.data.samples), start);
    const bool has_backward = keeps && activity_.backward(place.layer);
    if (model_.has_loss(place.layer)) {
      LayerGraph* const graph = has_backward ? &layer : nullptr;
      forwarded.losses.push_back({place.layer, add_loss(place, saved.data, outputs[i], graph)});
    }
    if (has_backward) {
      const std::int64_t stash = meter ? count_stash(*meter, call.inputs, outputs[i]) : 0;
      recorder_.memory().change(MemoryKind::kStash, stash);
      saved.layers.push_back({std::move(layer), stash});
    }
    if (readers[i] == 0) outputs[i].clear();
  }
  return forwarded;
}

// What the last reader has read is let go.
LayerGraph::Call StageRunner::make_call(const Place& place, const Data& data, EdgeTensors& inputs,
                                        std::vector<Tensors>& outputs,
                                        std::vector<int>& readers) const {
  LayerGraph::Call call{.inputs = {}, .carries = {}, .key = data.key, .splits = work_.splits};
  if (place.incoming.empty()) {
    call.inputs = data.samples->inputs;
    call.carries.assign(call.inputs.size(), false);
  }
  for (const std::size_t e : place.incoming) {
    const ModelEdge& edge = model_.edges[e];
    const std::size_t from = place_of_[edge.from.index()];
    if (from == places_.size()) {
      const auto found = inputs.find(e);
      ENSURE(found != inputs.end(), "what a layer reads is there");
      for (at::Tensor& tensor : found->second) call.inputs.push_back(std::move(tensor));
      inputs.erase(found);
    } else {
      for (const std::size_t o : edge.outputs) call.inputs.push_back(outputs[from].at(o));
      if (--readers[from] == 0) outputs[from].clear();
    }
    call.carries.resize(call.inputs.size(), activity_.edge_carries[e]);
  }
  return call;
}

double StageRunner::add_loss(const Place& place, const Data& data, const Tensors& outputs,
                             LayerGraph* graph) {
  const SteadyTime start = recorder_.now();
  const c10::AutoGradMode grad_mode(graph != nullptr);
  const LayerSpec& layer = model_.layers[place.layer.index()];
  const at::Tensor loss = layer.loss(outputs, data.samples->labels) * data.loss_scale;
  (void)recorder_.end_work();  // item() would wait for a GPU without an end
  const auto value = loss.item<double>();
  if (graph != nullptr) graph->add_loss(loss);
  finish_phase(place.layer, LayerPhase::kLoss, count_of(data.samples), start);
  return value;
}

StageRunner::SavedMicroBatch StageRunner::take(MicroBatchId micro_batch) {
  const auto found = saved_.find(micro_batch);
  ENSURE(found != saved_.end(), "a backward follows its forward");
  SavedMicroBatch saved = std::move(found->second);
  saved_.erase(found);
  return saved;
}

LayerGraph StageRunner::take_last(SavedMicroBatch& saved) {
  SavedLayer last = std::move(saved.layers.back());
  saved.layers.pop_back();
  recorder_.memory().change(MemoryKind::kStash, -last.stash);
  return std::move(last.graph);
}

// Of what enters the stage, as far as layers with a backward read it.
std::int64_t StageRunner::count_kept(const SavedMicroBatch& saved) const {
  std::int64_t bytes = 0;
  const auto add = [&](const Tensors& tensors) { bytes += count_bytes(tensors); };
  for (const auto& [e, tensors] : saved.inputs) {
    if (activity_.backward(model_.edges[e].to)) add(tensors);
  }
  for (const Place& place : places_) {
    if (place.incoming.empty() && activity_.backward(place.layer)) add(saved.data.samples->inputs);
  }
  return bytes;
}

// One memory order for every owner: what is summed over a tensor must not depend on strides.
void StageRunner::add_gradients(MicroBatchId micro_batch, LayerId layer, Tensors gradients) {
  if (gradients.empty()) return;
  for (at::Tensor& gradient : gradients) gradient = gradient.contiguous();
  add_gradients_(layer, micro_batch, std::move(gradients));
}

StageRunner::Arrived StageRunner::sort_by_layer(EdgeTensors gradients) const {
  Arrived arrived;
  for (auto& [e, tensors] : gradients) arrived[model_.edges[e].from][e] = std::move(tensors);
  return arrived;
}

// By output; in the order of edges, so that cuts do not matter.
Tensors StageRunner::sum_gradients(LayerId layer, Arrived& arrived) const {
  Tensors sums;
  for (auto& [e, tensors] : arrived[layer]) {
    const std::vector<std::size_t>& outputs = model_.edges[e].outputs;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (sums.size() <= outputs[i]) sums.resize(outputs[i] + 1);
      at::Tensor& sum = sums[outputs[i]];
      sum = sum.defined() ? at::add(sum, tensors[i]) : std::move(tensors[i]);
    }
  }
  arrived.erase(layer);
  return sums;
}

void StageRunner::hand_on(LayerId layer, Tensors gradients, Arrived& arrived,
                          EdgeTensors& leaving) const {
  std::size_t next = 0;
  for (const std::size_t e : place_of(layer).incoming) {
    const ModelEdge& edge = model_.edges[e];
    const std::size_t first = std::exchange(next, next + edge.outputs.size());
    if (!activity_.edge_carries[e]) continue;
    const bool is_inside = place_of_[edge.from.index()] != places_.size();
    Tensors& tensors = is_inside ? arrived[edge.from][e] : leaving[e];
    for (std::size_t i = first; i < next; ++i) tensors.push_back(std::move(gradients[i]));
  }
}

EdgeTensors StageRunner::backward(MicroBatchId micro_batch, EdgeTensors gradients) {
  SavedMicroBatch saved = take(micro_batch);
  Arrived arrived = sort_by_layer(std::move(gradients));
  EdgeTensors leaving;
  while (!saved.layers.empty()) {
    LayerGraph layer = take_last(saved);
    const SteadyTime start = recorder_.now();
    LayerGraph::Gradients found = layer.backward(sum_gradients(layer.layer(), arrived));
    hand_on(layer.layer(), std::move(found.inputs), arrived, leaving);
    add_gradients(micro_batch, layer.layer(), std::move(found.weights));
    finish_phase(layer.layer(), LayerPhase::kBackward, count_of(saved.data.samples), start);
  }
  return leaving;
}

EdgeTensors StageRunner::backward_input(MicroBatchId micro_batch, EdgeTensors gradients) {
  SavedMicroBatch saved = take(micro_batch);
  Arrived arrived = sort_by_layer(std::move(gradients));
  EdgeTensors leaving;
  for (auto saved_layer = saved.layers.rbegin(); saved_layer != saved.layers.rend();
       ++saved_layer) {
    LayerGraph& layer = saved_layer->graph;
    const SteadyTime start = recorder_.now();
    Tensors found = layer.backward_input(sum_gradients(layer.layer(), arrived));
    hand_on(layer.layer(), std::move(found), arrived, leaving);
    finish_phase(layer.layer(), LayerPhase::kBackwardInput, count_of(saved.data.samples), start);
  }
  std::erase_if(saved.layers, [&](const SavedLayer& layer) {
    if (layer.graph.owes_weights()) return false;
    recorder_.memory().change(MemoryKind::kStash, -layer.stash);
    return true;
  });
  saved.is_halved = true;
  if (!saved.layers.empty()) saved_.emplace(micro_batch, std::move(saved));
  return leaving;
}

bool StageRunner::has_halves(MicroBatchId micro_batch) const {
  const auto found = saved_.find(micro_batch);
  return found != saved_.end() && found->second.is_halved;
}

void StageRunner::backward_weight(MicroBatchId micro_batch, EdgeTensors gradients) {
  if (!has_halves(micro_batch)) {
    backward(micro_batch, std::move(gradients));
    return;
  }
  SavedMicroBatch saved = take(micro_batch);
  while (!saved.layers.empty()) {
    LayerGraph layer = take_last(saved);
    const SteadyTime start = recorder_.now();
    add_gradients(micro_batch, layer.layer(), layer.backward_weight());
    finish_phase(layer.layer(), LayerPhase::kBackwardWeight, count_of(saved.data.samples), start);
  }
}

EdgeTensors StageRunner::backward_apart(MicroBatchId micro_batch, EdgeTensors gradients) {
  SavedMicroBatch saved = take(micro_batch);
  Arrived arrived = sort_by_layer(std::move(gradients));
  EdgeTensors leaving;
  const int samples = count_of(saved.data.samples);
  while (!saved.layers.empty()) {
    LayerGraph layer = take_last(saved);
    SteadyTime start = recorder_.now();
    const LayerId id = layer.layer();
    const LayerActivity& activity = activity_.layers[id.index()];
    Tensors sums = sum_gradients(id, arrived);
    if (!activity.input_gradient || !activity.weight_gradient) {
      LayerGraph::Gradients found = layer.backward(sums);
      hand_on(id, std::move(found.inputs), arrived, leaving);
      add_gradients(micro_batch, id, std::move(found.weights));
      continue;
    }
    hand_on(id, layer.backward_input(sums), arrived, leaving);
    finish_phase(id, LayerPhase::kBackwardInput, samples, start);
    start = recorder_.now();
    add_gradients(micro_batch, id, layer.backward_weight());
    finish_phase(id, LayerPhase::kBackwardWeightAlone, samples, start);
  }
  return leaving;
}

void StageRunner::finish_phase(LayerId layer, LayerPhase phase, int samples, SteadyTime start) {
  if (measurement_.slow_layer == layer.value) {
    const auto elapsed = recorder_.end_work() - start;
    spin_until(start + elapsed + elapsed * measurement_.slow_percent / 100);
  }
  if (!measurement_.layers) return;
  recorder_.add_layer(
      {layer, phase, samples, std::chrono::duration_cast<Duration>(recorder_.end_work() - start)});
}

}  // namespace frazil
