#include "exec/run/stages/stage_runner.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "exec/measuring/stash_meter.h"
#include "exec/tensors/tensor_bytes.h"
#include "profiles/error.h"

namespace frazil {
namespace {

void spin_until(SteadyTime end) {
  while (std::chrono::steady_clock::now() < end) {
  }
}

// Returns the mean loss times its share of the step. Over no label at all the mean would be no
// number: such a loss is 0, and so are its gradients.
at::Tensor scaled_loss(const LayerSpec& layer, const Tensors& outputs, const at::Tensor& labels,
                       double scale) {
  if (scale == 0) {
    // A zero that depends on the outputs, whatever they are: infinity times 0 is none.
    const at::Tensor& scores = outputs.at(0);
    return scores.masked_fill(at::ones({}, scores.options().dtype(at::kBool)), 0).sum();
  }
  return layer.loss(outputs, labels) * scale;
}

// Returns what of a layer's gradients a forward is to keep: nothing if it will be run again, unless
// its kernels follow what is wanted.
LayerActivity choose_kept(const LayerSpec& layer, LayerActivity activity, bool keeps) {
  if (!keeps && !layer.follows_gradients)
    activity.input_gradient = activity.weight_gradient = false;
  return activity;
}

// Lets go of outputs that nobody reads any more, and of the graph of a forward that keeps nothing.
void let_go(Tensors& outputs, bool keeps, int readers) {
  if (readers == 0) outputs.clear();
  if (keeps) return;
  for (at::Tensor& output : outputs) output = output.detach();
}

}  // namespace

StageRunner::StageRunner(const StageContext& context, StageWork work, AddGradients add_gradients)
    : model_(context.model),
      work_(std::move(work)),
      activity_(context.activity),
      state_(context.state),
      add_gradients_(std::move(add_gradients)),
      recorder_(context.recorder),
      measurement_(context.measurement),
      boundary_(find_boundary(model_, activity_.cached)) {
  for_each_layer(work_.layers, [&](LayerId l) {
    if (activity_.is_idle(l)) return;
    places_.push_back({.layer = l, .incoming = model_.edges_into(l), .leaving = {}});
    has_backward_ = has_backward_ || activity_.backward(l);
    reads_samples_ = reads_samples_ || places_.back().incoming.empty() || model_.has_loss(l);
  });
  place_of_.assign(model_.layers.size(), places_.size());
  for (std::size_t i = 0; i < places_.size(); ++i) place_of_[places_[i].layer.index()] = i;
  for (Place& place : places_) {
    for (const std::size_t e : model_.edges_from(place.layer)) {
      if (activity_.is_idle(model_.edges[e].to)) continue;
      if (place_of_[model_.edges[e].to.index()] == places_.size()) {
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
  if (reads_samples_) saved.brought = recorder_.compute().upload(*data.samples);
  if (saved.brought) {
    saved.data.samples = saved.brought.get();
    for (at::Tensor& tensor : saved.data.features.tensors) {
      tensor = recorder_.compute().upload(tensor);
    }
  }
  if (work_.recomputes && has_backward_) {
    saved.inputs = inputs;
    saved.kept_inputs = count_kept(saved);
    recorder_.memory().change(MemoryKind::kStash, saved.kept_inputs);
  }
  Forwarded forwarded = run_layers(saved, std::move(inputs), /*keeps=*/!work_.recomputes, weights);
  if (!work_.recomputes) saved.data.features = {};
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
  saved.data.features = {};
}

StageRunner::Forwarded StageRunner::run_layers(SavedMicroBatch& saved, EdgeTensors inputs,
                                               bool keeps, const OldWeights& weights) {
  Forwarded forwarded;
  std::vector<Tensors> outputs(places_.size());
  std::vector<int> readers(places_.size());
  const std::size_t first = put_features(saved.data.features, outputs, readers);
  for (std::size_t i = 0; i < first; ++i) hand_out(places_[i], outputs[i], forwarded);
  if (saved.data.features.depth == activity_.cached) forwarded.features.clear();
  for (std::size_t i = first; i < places_.size(); ++i) {
    const Place& place = places_[i];
    const SteadyTime start = recorder_.now();
    const LayerActivity activity = choose_kept(model_.layers[place.layer.index()],
                                               activity_.layers[place.layer.index()], keeps);
    const auto old = weights.find(place.layer);
    const Tensors& parameters =
        old == weights.end() ? state_.at(place.layer).parameters : old->second;
    LayerGraph::Call call = make_call(place, saved.data, inputs, outputs, readers);
    Tensors statistics;
    call.statistics = &state_.at(place.layer).statistics;
    call.batch_statistics = &statistics;
    std::optional<AllocationMeter> meter;
    if (recorder_.memory().is_open()) meter.emplace();
    LayerGraph layer(model_, place.layer, parameters, activity, call);
    if (!statistics.empty()) {
      forwarded.statistics.emplace_back(place.layer, std::move(statistics));
    }
    outputs[i] = layer.take_outputs();
    readers[i] = place.readers;
    hand_out(place, outputs[i], forwarded);
    finish_phase(place.layer, LayerPhase::kForward, count_of(saved.data.samples), start);
    const bool has_backward = keeps && activity_.backward(place.layer);
    if (model_.has_loss(place.layer)) {
      LayerGraph* const graph = has_backward ? &layer : nullptr;
      forwarded.losses.push_back(add_loss(place, saved.data, outputs[i], graph));
    }
    if (has_backward) {
      const std::int64_t stash = meter ? count_stash(*meter, call.inputs, outputs[i]) : 0;
      recorder_.memory().change(MemoryKind::kStash, stash);
      saved.layers.push_back({std::move(layer), stash});
    }
    let_go(outputs[i], keeps, readers[i]);
  }
  return forwarded;
}

// Puts features that have come where their layers would have put them. Returns the first place that
// is to run.
std::size_t StageRunner::put_features(const PrefixFeatures& features, std::vector<Tensors>& outputs,
                                      std::vector<int>& readers) const {
  std::vector<Tensors> layers = spread_by_layer(model_, features);
  std::size_t i = 0;
  for (; i < places_.size() && places_[i].layer.value < features.depth; ++i) {
    outputs[i] = std::move(layers[places_[i].layer.index()]);
    for (const std::size_t e : model_.edges_from(places_[i].layer)) {
      const LayerId to = model_.edges[e].to;
      if (to.value >= features.depth && place_of_[to.index()] != places_.size()) ++readers[i];
    }
  }
  return i;
}

void StageRunner::hand_out(const Place& place, const Tensors& outputs, Forwarded& forwarded) const {
  for (const std::size_t e : place.leaving) {
    Tensors& leaving = forwarded.outputs[e];
    for (const std::size_t o : model_.edges[e].outputs) leaving.push_back(outputs.at(o).detach());
  }
  for (const LayerOutput& crossing : boundary_) {
    if (crossing.layer != place.layer) continue;
    forwarded.features.push_back(outputs.at(crossing.output).detach());
  }
}

// Collects the inputs of a layer. Outputs that their last reader has read are let go.
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

LayerLoss StageRunner::add_loss(const Place& place, const Data& data, const Tensors& outputs,
                                LayerGraph* graph) {
  const SteadyTime start = recorder_.now();
  const c10::AutoGradMode grad_mode(true);  // its kernels, too, may follow what is wanted
  const LayerSpec& layer = model_.layers[place.layer.index()];
  const auto counted = data.label_scales.find(place.layer);
  const double scale = counted == data.label_scales.end() ? data.loss_scale : counted->second;
  const at::Tensor loss = scaled_loss(layer, outputs, data.samples->labels, scale);
  LayerLoss told{.layer = place.layer};
  if (recorder_.compute().lanes() != nullptr) {
    told.unread = loss.detach();
  } else {
    (void)recorder_.end_work();  // item() would wait for a GPU without an end
    told.value = loss.item<double>();
  }
  if (graph != nullptr) graph->add_loss(loss);
  finish_phase(place.layer, LayerPhase::kLoss, count_of(data.samples), start);
  return told;
}

// Returns the bytes of what enters the stage or comes from the cache, as far as layers with a
// backward read it.
std::int64_t StageRunner::count_kept(const SavedMicroBatch& saved) const {
  std::int64_t bytes = 0;
  const auto add = [&](const Tensors& tensors) { bytes += count_bytes(tensors); };
  for (const auto& [e, tensors] : saved.inputs) {
    if (activity_.backward(model_.edges[e].to)) add(tensors);
  }
  const PrefixFeatures& features = saved.data.features;
  const std::vector<Tensors> layers = spread_by_layer(model_, features);
  for (const ModelEdge& edge : model_.edges) {
    if (edge.from.value >= features.depth || edge.to.value < features.depth) continue;
    if (place_of_[edge.to.index()] == places_.size() || !activity_.backward(edge.to)) continue;
    for (const std::size_t o : edge.outputs) add({layers[edge.from.index()].at(o)});
  }
  for (const Place& place : places_) {
    if (place.incoming.empty() && activity_.backward(place.layer)) add(saved.data.samples->inputs);
  }
  return bytes;
}

void StageRunner::finish_phase(LayerId layer, LayerPhase phase, int samples, SteadyTime start) {
  if (measurement_.slow_layer == layer.value ||
      measurement_.slow_device == recorder_.device().value) {
    const auto elapsed = recorder_.end_work() - start;
    spin_until(start + elapsed + elapsed * measurement_.slow_percent / 100);
  }
  if (measurement_.layers) recorder_.add_layer(layer, phase, samples, start);
}

}  // namespace frazil
