#include "exec/run/executor.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <string>
#include <utility>

#include "exec/devices/step_fault.h"
#include "exec/measuring/action_range.h"
#include "profiles/error.h"

namespace frazil {
namespace {

[[noreturn]] void refuse(const Action& action) {
  throw InfeasibleError("the executor does not perform " + to_text(action) + " yet");
}

MicroBatchId micro_batch_of(const Action& action) {
  ENSURE(action.micro_batches.has_value(), "an action with a micro-batch");
  if (action.micro_batches->count() != 1) refuse(action);
  return action.micro_batches->first;
}

Lane lane_of(ActionKind kind) {
  switch (kind) {
    case ActionKind::kForward:
    case ActionKind::kBackward:
    case ActionKind::kBackwardInput:
    case ActionKind::kBackwardWeight:
    case ActionKind::kRecompute:
    case ActionKind::kPair:
    case ActionKind::kUpdate:
    case ActionKind::kUnshard:
    case ActionKind::kReshard:
    case ActionKind::kMove:
      return Lane::kCompute;
    case ActionKind::kSendForward:
    case ActionKind::kSendBackward:
      return Lane::kSend;
    case ActionKind::kReceiveForward:
    case ActionKind::kReceiveBackward:
      return Lane::kReceive;
    case ActionKind::kReduceGradients:
    case ActionKind::kBarrier:
      return Lane::kCollective;
  }
  ENSURE(false, "unknown kind of action");
}

}  // namespace

Executor::Executor(const ExecutionContext& context)
    : model_(context.model),
      optimizer_(context.optimizer),
      program_(context.program),
      device_(context.device),
      state_(context.state),
      communicator_(context.communicator),
      recorder_(context.recorder),
      measurement_(context.measurement),
      commit_(context.commit),
      limit_(context.limit),
      gradients_(program_, device_, state_, communicator_, recorder_.memory()),
      statistics_(model_, program_, device_, state_, communicator_),
      entries_(model_, program_),
      data_(program_, model_),
      reads_(program_.versions),
      kept_(program_.plan.versions, recorder_.memory()) {
  for (std::size_t p = 0; p < program_.plan.pipelines.size(); ++p) {
    for (std::size_t s = 0; s < program_.plan.pipelines[p].stages.size(); ++s) {
      const PipelineId pipeline{p};
      const StageId stage{s};
      const Stage& described = program_.stage(pipeline, stage);
      if (std::find(described.devices.begin(), described.devices.end(), device_) ==
          described.devices.end()) {
        continue;
      }
      const StageWork work{described.layers, program_.splits_backward(pipeline, stage),
                           described.memory == MemoryPolicy::kRecompute};
      const auto add = [this](LayerId layer, MicroBatchId micro_batch, Tensors gradients) {
        gradients_.add(layer, micro_batch, std::move(gradients));
      };
      runners_.try_emplace({pipeline, stage}, context.stage(), work, add);
    }
  }
  if (program_.activity.cached > 0) {
    prefix_.emplace(context.stage());
  }
  if (optimizer_.groups.empty()) return;
  for (const auto& [layer, state] : state_) {
    rules_[layer] = find_rules(optimizer_.groups, optimizer_.weight_decay, model_, layer);
  }
}

std::vector<LossSample> Executor::run_step(const StepInput& input) {
  input_ = input;
  data_.begin(input);
  losses_.clear();
  entries_.clear();
  reads_.begin();
  clip_scale_ = 1;
  watch_.begin();
  unread_.clear();
  features_.clear();
  step_ = input.step;
  action_ = nullptr;
  try {
    gradients_.begin(input.step);
    statistics_.begin({.seed = input.seed, .step = input.step, .micro_batch = {}});
    has_voted_ = false;
    has_folded_ = false;
    recorder_.begin_step();
    if (measurement_.memory) begin_memory();
    for (const Action& action : program_.schedule.devices[device_.index()]) {
      action_.store(&action, std::memory_order_relaxed);
      if (is_last_update(action)) share_statistics();
      perform(action);
      kept_.settle();
    }
    kept_.clear();
    action_ = nullptr;
    end_statistics(false);
    communicator_.finish();
    settle();
    watch_.settle();
  } catch (...) {
    // Another action may have been the one that the GPU has failed at.
    if (const Action* const failed = recorder_.find_failed()) action_ = failed;
    rethrow_at({.rank = device_.value, .step = input.step, .action = action_});
  }
  return std::move(losses_);
}

// Waits for what a device that the host has run ahead of was given so far.
void Executor::catch_up() {
  const Action* const here = action_;
  recorder_.catch_up([this](const Action* action) { action_ = action; });
  action_ = here;
}

// Reads what such a device has been asked for so far.
void Executor::read_numbers() {
  if (unread() == nullptr) return;
  const GpuLanes& lanes = *recorder_.compute().lanes();
  unread_.fetch(lanes);
  lanes.wait_for(lanes.record(DeviceLane::kCompute));
  unread_.deliver();
}

// Waits for a device that the host has run ahead of, and reads what it has left to be read.
void Executor::settle() {
  if (unread() == nullptr) return;
  unread_.fetch(*recorder_.compute().lanes());
  recorder_.settle([this](const Action* action) { action_ = action; });
  unread_.deliver();
  for (const auto& [action, features] : std::exchange(features_, {})) {
    action_ = action;
    store_features(*action, features);
  }
  action_ = nullptr;
}

std::string Executor::place() const {
  const Action* const action = action_;
  return "step " + std::to_string(step_) + (action ? ", action " + to_text(*action) : "");
}

void Executor::perform(const Action& action) {
  const Lane lane = lane_of(action.kind);
  const ActionRange range(recorder_.compute(), action);
  const ActionStart start = recorder_.begin(lane);
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
      break;
    case ActionKind::kReceiveForward:
    case ActionKind::kReceiveBackward:
      receive(action);
      break;
    case ActionKind::kReduceGradients:
      gradients_.reduce();
      break;
    case ActionKind::kBarrier:
      pass_barrier();
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

void Executor::forward(const Action& action) {
  const MicroBatchId micro_batch = micro_batch_of(action);
  const std::int64_t received = measurement_.memory ? entries_.count_received(action) : 0;
  recorder_.memory().change(MemoryKind::kReceive, received);
  const OldWeights& old = reads_.choose(action, kept_.before_newest());
  reads_.note(action, program_.stage(action.pipeline, action.stage).layers, old);
  note_updates(action);
  StageRunner::Data data = data_.of(action);
  const std::span<const std::int64_t> ids = data_.cached_ids(action);
  if (!ids.empty()) find_features(action, ids, data);
  StageRunner::Forwarded forwarded =
      runner(action).forward(micro_batch, data, entries_.take_activations(action), old);
  recorder_.memory().change(MemoryKind::kReceive, -received);
  if (!ids.empty() && !forwarded.features.empty()) keep_features(action, forwarded.features);
  for (auto& [layer, own] : forwarded.statistics) {
    statistics_.add(layer, micro_batch, std::move(own));
  }
  entries_.leave_activations(action, std::move(forwarded.outputs));
  note_losses(action, forwarded.losses);
}

// Tells the least updates that a layer of the stage has had which trains: each step of the window
// that the device has done has brought one.
void Executor::note_updates(const Action& forward) {
  if (input_.updates == nullptr) return;
  std::optional<int> least;
  for_each_layer(program_.stage(forward.pipeline, forward.stage), [&](LayerId layer) {
    const bool trains = program_.activity.layers[layer.index()].weight_gradient;
    if (!trains || state_.at(layer).parameters.empty()) return;
    const int had = (*input_.updates)[layer];
    least = std::min(had, least.value_or(had));
  });
  if (!least) return;
  recorder_.add_weight_read(
      {forward.stage, micro_batch_of(forward), *least, input_.steps_before - *least});
}

void Executor::note_losses(const Action& forward, const std::vector<LayerLoss>& losses) {
  for (const LayerLoss& loss : losses) {
    const double share = data_.share_of_step(forward, loss.layer);
    const LossSample sample{micro_batch_of(forward), loss.layer, loss.value * share};
    if (!loss.unread.defined()) {
      losses_.push_back(sample);
      continue;
    }
    unread_.add(loss.unread, [this, sample, share](double value) {
      losses_.push_back({sample.micro_batch, sample.layer, value * share});
    });
  }
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

// W is the whole backward of a stage that has no layer with an I.
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
  const DeviceId to =
      program_.device_of(message.pipeline, message.to, micro_batch_of(action), message.to_slice);
  communicator_.send(to.value, tag_of(message), entries_.take(message));
}

void Executor::receive(const Action& action) {
  const Message message = message_of(action);
  const DeviceId from = program_.device_of(message.pipeline, message.from, micro_batch_of(action),
                                           message.from_slice);
  entries_.put(message, communicator_.receive(from.value, tag_of(message)));
}

}  // namespace frazil
