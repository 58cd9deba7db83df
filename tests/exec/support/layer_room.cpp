#include "tests/exec/support/layer_room.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "exec/measuring/allocation_meter.h"
#include "exec/reduction/gradient_tree.h"
#include "exec/state/optimizer.h"

namespace frazil {
namespace {

constexpr MicroBatchId kSecond{1};

std::int64_t count_bytes(const Tensors& tensors) {
  std::int64_t bytes = 0;
  for (const at::Tensor& tensor : tensors) bytes += static_cast<std::int64_t>(tensor.nbytes());
  return bytes;
}

std::int64_t count_bytes(const EdgeTensors& edges) {
  std::int64_t bytes = 0;
  for (const auto& [edge, tensors] : edges) bytes += count_bytes(tensors);
  return bytes;
}

// Runs one layer as a stage of its own, with what it reads made before.
class LayerAlone {
 public:
  LayerAlone(const MeasuredLayers& of, DeviceState& state, LayerId layer)
      : of_(of), state_(state), layer_(layer) {
    std::vector<const Tensors*> parameters;
    for (const auto& [id, own] : state) parameters.push_back(&own.parameters);
    const std::vector<Tensors> outputs = forward_model(of.model, parameters, of.micro_batch.inputs);
    for (const std::size_t e : of.model.edges_into(layer)) {
      for (const std::size_t o : of.model.edges[e].outputs) {
        inputs_[e].push_back(outputs[of.model.edges[e].from.index()][o].detach().clone());
      }
    }
    for (const std::size_t e : of.model.edges_from(layer)) {
      if (!of.activity.edge_carries[e]) continue;
      for (const std::size_t o : of.model.edges[e].outputs) {
        gradients_[e].push_back(at::ones_like(outputs[layer.index()][o].detach()));
      }
    }
  }

  Room measure(bool splits, bool recomputes) {
    Room room;
    const StageWork work{{{layer_, layer_}}, splits, recomputes};
    measure_whole(work, room);
    const LayerActivity& activity = of_.activity.layers[layer_.index()];
    if (splits && activity.input_gradient) measure_halves(work, room);
    if (activity.weight_gradient) room.of[ActionKind::kUpdate] = measure_update();
    return room;
  }

 private:
  StageRunner make_runner(const StageWork& work, GradientTree& tree) {
    if (of_.activity.layers[layer_.index()].weight_gradient) {
      tree.add({0, 1}, make_gradients());
    }
    return {{of_.model, of_.activity, state_, recorder_, measurement_},
            work,
            [&tree](LayerId, MicroBatchId m, Tensors gradients) {
              tree.add({m.value, m.value + 1}, std::move(gradients));
            }};
  }

  Tensors make_gradients() const {
    Tensors gradients;
    for (const at::Tensor& parameter : state_.at(layer_).parameters) {
      gradients.push_back(at::ones_like(parameter.detach()));
    }
    return gradients;
  }

  // A layer with a backward leaves its stash, and its outputs are the inputs of the next layer. The
  // simulator counts nothing at all of other layers.
  void measure_forward(StageRunner& runner, bool keeps, Room& room) {
    const AllocationMeter meter;
    const StageRunner::Forwarded forwarded =
        runner.forward(kSecond, {.samples = &of_.micro_batch, .key = {}}, inputs_);
    room.of[ActionKind::kForward] =
        keeps ? meter.peak_bytes() - meter.live_bytes() : meter.peak_bytes() + count_bytes(inputs_);
  }

  void measure_whole(const StageWork& work, Room& room) {
    GradientTree tree(2);
    StageRunner runner = make_runner(work, tree);
    const bool has_backward = of_.activity.backward(layer_);
    measure_forward(runner, has_backward && !work.recomputes, room);
    if (!has_backward) return;
    if (work.recomputes) {
      const AllocationMeter meter;
      runner.recompute(kSecond);
      room.of[ActionKind::kRecompute] = meter.peak_bytes() - meter.live_bytes();
    }
    const AllocationMeter meter;
    runner.backward(kSecond, gradients_);
    const std::int64_t peak = meter.peak_bytes() + count_bytes(gradients_);
    room.of[ActionKind::kBackward] = peak;
    // A layer without I may have the whole of its backward as W.
    room.of[ActionKind::kBackwardWeight] = peak;
  }

  void measure_halves(const StageWork& work, Room& room) {
    GradientTree tree(2);
    StageRunner runner = make_runner(work, tree);
    const AllocationMeter all;
    runner.forward(kSecond, {.samples = &of_.micro_batch, .key = {}}, inputs_);
    const std::int64_t kept = all.live_bytes();
    {
      const AllocationMeter meter;
      runner.backward_input(kSecond, gradients_);
      room.of[ActionKind::kBackwardInput] = meter.peak_bytes() + count_bytes(gradients_);
    }
    if (!of_.activity.layers[layer_.index()].weight_gradient) return;
    room.half = std::max<std::int64_t>(0, all.live_bytes() - kept);
    const AllocationMeter meter;
    runner.backward_weight(kSecond, {});
    room.of[ActionKind::kBackwardWeight] = meter.peak_bytes();
  }

  // Measures an update with moments there, and with a clip scale.
  std::int64_t measure_update() const {
    LayerState state = clone(state_.at(layer_));
    update_layer(state, make_gradients(), of_.optimizer, 1e-2);
    Tensors gradients = make_gradients();
    const AllocationMeter meter;
    for (at::Tensor& gradient : gradients) gradient = at::mul(gradient, 0.5);
    update_layer(state, gradients, of_.optimizer, 1e-2);
    return meter.peak_bytes();
  }

  const MeasuredLayers& of_;
  DeviceState& state_;
  LayerId layer_;
  EdgeTensors inputs_;
  EdgeTensors gradients_;
  Recorder recorder_{DeviceId{0}, SteadyTime{}};
  Measurement measurement_;
};

}  // namespace

void add_layer(const Room& layer, Room& stage) {
  for (const auto& [kind, bytes] : layer.of) stage.of[kind] = std::max(stage.of[kind], bytes);
  stage.half += layer.half;
}

DeviceState make_start_state(const ModelSpec& model, const Activity& activity) {
  DeviceState state;
  for (std::size_t l = 0; l < model.layers.size(); ++l) {
    state[LayerId{l}] = make_initial_state(model, LayerId{l}, 7);
    set_active(state[LayerId{l}], activity.layers[l].active);
  }
  return state;
}

Room measure_room(const MeasuredLayers& layers, DeviceState& state, LayerId layer, bool splits,
                  bool recomputes) {
  return LayerAlone(layers, state, layer).measure(splits, recomputes);
}

}  // namespace frazil
