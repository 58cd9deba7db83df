// Part of exec/run/stages/stage_runner.h: the backward functions, whole, in two halves, or apart
// for measuring.
#include "exec/run/stages/stage_runner.h"

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>

#include <algorithm>
#include <utility>

#include "profiles/error.h"

namespace frazil {

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

// Hands out gradients in one memory order for every owner, because what is summed over a tensor
// must not depend on strides. A gradient that is a view keeps the tensor it was cut from, and so
// nobody could add to it in place: it is handed out without autograd's notes on views.
void StageRunner::add_gradients(MicroBatchId micro_batch, LayerId layer, Tensors gradients) {
  if (gradients.empty()) return;
  for (at::Tensor& gradient : gradients) {
    const at::AutoDispatchBelowADInplaceOrView no_view_notes;
    gradient = gradient.contiguous().detach();
  }
  add_gradients_(layer, micro_batch, std::move(gradients));
}

StageRunner::Arrived StageRunner::sort_by_layer(EdgeTensors gradients) const {
  Arrived arrived;
  for (auto& [e, tensors] : gradients) arrived[model_.edges[e].from][e] = std::move(tensors);
  return arrived;
}

// Returns the sums of the gradients that have come for a layer, by output. They are added in the
// order of edges, so that stage boundaries do not matter.
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

}  // namespace frazil
