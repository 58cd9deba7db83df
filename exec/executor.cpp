#include "exec/executor.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <string>
#include <utility>

#include "exec/clip.h"
#include "exec/optimizer.h"
#include "exec/step_fault.h"
#include "profiles/error.h"

namespace frazil {
namespace {

[[noreturn]] void refuse(const Action& action) {
  throw InfeasibleError("the executor does not perform " + to_text(action) + " yet");
}

MicroBatchId micro_batch_of(const Action& action) {
  ENSURE(action.micro_batches.has_value(), "an action with a micro-batch");
  if (action.micro_batches->count() != 1 || action.slice) refuse(action);
  return action.micro_batches->first;
}

}  // namespace

Executor::Executor(const ModelSpec& model, const OptimizerConfig& optimizer,
                   const StepProgram& program, DeviceId device, DeviceState& state,
                   Communicator& communicator, Recorder& recorder, const Measurement& measurement)
    : model_(model),
      optimizer_(optimizer),
      program_(program),
      device_(device),
      state_(state),
      communicator_(communicator),
      recorder_(recorder),
      measurement_(measurement),
      gradients_(program, device, state, communicator, recorder.memory()),
      entries_(model, program) {
  for (std::size_t p = 0; p < program.plan.pipelines.size(); ++p) {
    for (std::size_t s = 0; s < program.plan.pipelines[p].stages.size(); ++s) {
      const PipelineId pipeline{p};
      const StageId stage{s};
      const Stage& described = program.stage(pipeline, stage);
      if (std::find(described.devices.begin(), described.devices.end(), device) ==
          described.devices.end()) {
        continue;
      }
      const StageWork work{described.layers, program.splits_backward(pipeline, stage),
                           described.memory == MemoryPolicy::kRecompute};
      const auto add = [this](LayerId layer, MicroBatchId micro_batch, Tensors gradients) {
        gradients_.add(layer, micro_batch, std::move(gradients));
      };
      runners_.try_emplace({pipeline, stage}, model, work, program.activity, state, add, recorder,
                           measurement);
    }
  }
}

std::vector<LossSample> Executor::run_step(const StepInput& input) {
  input_ = input;
  losses_.clear();
  entries_.clear();
  updates_.clear();
  old_weights_.clear();
  clip_scale_ = 1;
  gradients_.begin(input.step);
  if (measurement_.memory) begin_memory();
  StepPlace place{.rank = device_.value, .step = input.step};
  try {
    for (const Action& action : program_.schedule.devices[device_.index()]) {
      place.action = &action;
      perform(action);
    }
  } catch (...) {
    rethrow_at(place);
  }
  communicator_.finish();
  return std::move(losses_);
}

void Executor::perform(const Action& action) {
  const SteadyTime start = recorder_.now();
  Lane lane = Lane::kCompute;
  switch (action.kind) {
    case ActionKind::kForward:
    case ActionKind::kBackward:
    case ActionKind::kBackwardInput:
    case ActionKind::kBackwardWeight:
    case ActionKind::kRecompute:
      compute(action);
      break;
    case ActionKind::kPair:
      for (const Action& half : std::get<ActionPair>(action.detail).halves) compute(half);
      break;
    case ActionKind::kSendForward:
    case ActionKind::kSendBackward:
      send(action);
      lane = Lane::kSend;
      break;
    case ActionKind::kReceiveForward:
    case ActionKind::kReceiveBackward:
      receive(action);
      lane = Lane::kReceive;
      break;
    case ActionKind::kReduceGradients:
      gradients_.reduce();
      lane = Lane::kCollective;
      break;
    case ActionKind::kBarrier:
      exchange_norms();
      lane = Lane::kCollective;
      break;
    case ActionKind::kUpdate:
      update(action);
      break;
    case ActionKind::kUnshard:
    case ActionKind::kReshard:
    case ActionKind::kMove:
      refuse(action);
  }
  recorder_.add(action, input_.step, lane, start);
}

void Executor::compute(const Action& action) {
  switch (action.kind) {
    case ActionKind::kForward:
      forward(action);
      return;
    case ActionKind::kBackward:
    case ActionKind::kBackwardInput:
      backward(action);
      return;
    case ActionKind::kBackwardWeight:
      backward_weight(action);
      return;
    case ActionKind::kRecompute:
      runner(action).recompute(micro_batch_of(action));
      return;
    case ActionKind::kSendForward:
    case ActionKind::kSendBackward:
    case ActionKind::kReceiveForward:
    case ActionKind::kReceiveBackward:
    case ActionKind::kReduceGradients:
    case ActionKind::kBarrier:
    case ActionKind::kUpdate:
    case ActionKind::kUnshard:
    case ActionKind::kReshard:
    case ActionKind::kPair:
    case ActionKind::kMove:
      refuse(action);
  }
}

StageRunner& Executor::runner(const Action& action) {
  return runners_.at({action.pipeline, action.stage});
}

void Executor::begin_memory() {
  Bytes parameters;
  Bytes optimizer;
  for (const auto& [layer, state] : state_) {
    const Bytes moments = bytes_of_moments(state);
    parameters += bytes_of(state) - moments;
    optimizer += moments;
  }
  recorder_.memory().begin(device_, parameters, optimizer);
}

// What has come from another device for layers without a backward; of others it is stash.
std::int64_t Executor::count_received(const Action& action, const EdgeTensors& inputs) const {
  std::int64_t bytes = 0;
  for (const StageLink& link :
       program_.links[action.pipeline.index()][action.stage.index()].reads) {
    if (program_.device_of(action.pipeline, link.peer, micro_batch_of(action)) == device_) continue;
    for (const std::size_t e : link.edges) {
      if (program_.activity.backward(model_.edges[e].to)) continue;
      for (const at::Tensor& tensor : inputs.at(e)) {
        bytes += static_cast<std::int64_t>(tensor.nbytes());
      }
    }
  }
  return bytes;
}

void Executor::forward(const Action& action) {
  const MicroBatchId micro_batch = micro_batch_of(action);
  const Samples& samples = (*input_.micro_batches)[micro_batch.index()];
  const auto count = static_cast<double>(samples.count());
  const StageRunner::Data data{
      &samples, count / count_samples(action), {input_.seed, input_.step, micro_batch}};
  EdgeTensors inputs = entries_.take_activations(action);
  const std::int64_t received = measurement_.memory ? count_received(action, inputs) : 0;
  recorder_.memory().change(MemoryKind::kReceive, received);
  StageRunner::Forwarded forwarded =
      runner(action).forward(micro_batch, data, std::move(inputs), choose_weights(action));
  recorder_.memory().change(MemoryKind::kReceive, -received);
  entries_.leave_activations(action, std::move(forwarded.outputs));
  // With weight versions an update has fewer samples than the step.
  const double share = static_cast<double>(count_samples(action)) / input_.samples;
  for (const LayerLoss& loss : forwarded.losses) {
    losses_.push_back({micro_batch, loss.layer, loss.value * share});
  }
}

// Samples that share one update: those of the step, or of the micro-batch's group.
int Executor::count_samples(const Action& action) const {
  if (program_.versions.empty()) return input_.samples;
  const std::vector<int>& group_of = program_.versions[action.stage.index()].group_of;
  const int group = group_of[micro_batch_of(action).index()];
  int samples = 0;
  for (std::size_t m = 0; m < group_of.size(); ++m) {
    if (group_of[m] == group) samples += static_cast<int>((*input_.micro_batches)[m].count());
  }
  return samples;
}

const OldWeights& Executor::choose_weights(const Action& forward) const {
  static const OldWeights kNone;
  if (program_.versions.empty()) return kNone;
  const auto done = updates_.find(forward.stage);
  const int newest = done == updates_.end() ? 0 : done->second;
  const int version =
      program_.versions[forward.stage.index()].read[micro_batch_of(forward).index()];
  ENSURE(version == newest || version + 1 == newest, "a version that the stage holds");
  return version == newest ? kNone : old_weights_;
}

void Executor::backward(const Action& action) {
  const MicroBatchId micro_batch = micro_batch_of(action);
  StageRunner& stage = runner(action);
  EdgeTensors gradients = entries_.take_gradients(action);
  if (action.kind == ActionKind::kBackwardInput) {
    gradients = stage.backward_input(micro_batch, std::move(gradients));
  } else if (measurement_.split_backward && input_.step % 2 == 1) {
    gradients = stage.backward_apart(micro_batch, std::move(gradients));
  } else {
    gradients = stage.backward(micro_batch, std::move(gradients));
  }
  entries_.leave_gradients(action, std::move(gradients));
}

// Where no layer of a stage has an I, its W is the whole of its backward.
void Executor::backward_weight(const Action& action) {
  const MicroBatchId micro_batch = micro_batch_of(action);
  StageRunner& stage = runner(action);
  const bool is_whole = !stage.has_halves(micro_batch);
  stage.backward_weight(micro_batch, is_whole ? entries_.take_gradients(action) : EdgeTensors());
}

Tag Executor::tag_of(const Message& message) const {
  return {.kind = message.backward ? MessageKind::kActivationGradient : MessageKind::kActivation,
          .pipeline = message.pipeline.value,
          .from = message.from.value,
          .stage = message.to.value,
          .index = message.micro_batch.value,
          .step = input_.step};
}

void Executor::send(const Action& action) {
  const Message message = message_of(action);
  const DeviceId to = program_.device_of(message.pipeline, message.to, micro_batch_of(action));
  communicator_.send(to.value, tag_of(message), entries_.take(message));
}

void Executor::receive(const Action& action) {
  const Message message = message_of(action);
  const DeviceId from = program_.device_of(message.pipeline, message.from, micro_batch_of(action));
  entries_.put(message, communicator_.receive(from.value, tag_of(message)));
}

void Executor::exchange_norms() {
  clip_scale_ = find_clip_scale(gradients_.complete(), program_, device_, communicator_,
                                input_.step, optimizer_.clip_norm);
}

void Executor::update(const Action& action) {
  for (const LayerRange& range : program_.stage(action.pipeline, action.stage).layers) {
    for (LayerId l = range.first; l <= range.last; ++l.value) {
      if (!gradients_.has(l)) continue;
      update_weights(l, gradients_.take(l));
    }
  }
  if (!program_.versions.empty()) note_reads(action);
}

void Executor::update_weights(LayerId layer, Tensors gradients) {
  const SteadyTime start = recorder_.now();
  if (clip_scale_ != 1) {
    for (at::Tensor& gradient : gradients) gradient = at::mul(gradient, clip_scale_);
  }
  for (at::Tensor& gradient : gradients) gradient = gradient.contiguous();
  LayerState& state = state_.at(layer);
  if (!program_.versions.empty()) {
    // Graphs of micro-batches in flight hold the version that they have read.
    old_weights_[layer] = state.parameters;
    for (at::Tensor& parameter : state.parameters) {
      parameter = parameter.detach().clone().set_requires_grad(true);
    }
  }
  const Bytes before = bytes_of_moments(state);
  update_layer(state, gradients, optimizer_, input_.learning_rate);
  recorder_.memory().change(MemoryKind::kOptimizer, (bytes_of_moments(state) - before).count);
  if (measurement_.layers) {
    recorder_.add_layer({layer, LayerPhase::kUpdate, 0,
                         std::chrono::duration_cast<Duration>(recorder_.now() - start)});
  }
}

void Executor::note_reads(const Action& update) {
  const StageVersions& versions = program_.versions[update.stage.index()];
  const int group = updates_[update.stage]++;
  for (std::size_t m = 0; m < versions.read.size(); ++m) {
    if (versions.group_of[m] != group) continue;
    recorder_.add_weight_read(
        {update.stage, MicroBatchId{m}, versions.read[m], group - versions.read[m]});
  }
}

}  // namespace frazil
