#include "planner/lower.h"

#include <algorithm>

#include "planner/lowering.h"
#include "profiles/error.h"

namespace frazil {
namespace {

// Two passes: first every action becomes its task, then tasks are connected in task order, so that
// a dependency may point at any other device's list. Tasks of a micro-batch are found by
// (stage, micro-batch) alone, because a micro-batch has one pipeline.
class Lowering {
 public:
  Lowering(const Plan& plan, const ModelProfile& profile, const Cluster& cluster,
           const Activity& activity, const LoweringOptions& options)
      : state_(begin_lowering(plan, profile, cluster, activity, options)), cluster_(cluster) {}

  LoweredStep run(const Schedule& schedule) {
    ENSURE(schedule.devices.size() <= cluster_.devices.size(), "a list of an unknown device");
    make_room_for_tasks();
    std::size_t actions = 0;
    for (const auto& list : schedule.devices) actions += list.size();
    state_.step.graph.reserve(actions, 2 * actions);
    state_.step.actions.reserve(actions);
    for (std::size_t device = 0; device < schedule.devices.size(); ++device) {
      add_list(DeviceId{device}, schedule.devices[device]);
    }
    const auto listed = static_cast<TaskId>(state_.step.graph.size());
    for (TaskId task = 0; task < listed; ++task) connect(task);
    add_collectives(state_);
    add_barrier(state_, listed);
    hold_states(state_);
    return std::move(state_.step);
  }

 private:
  void make_room_for_tasks() {
    std::size_t most_stages = 0;
    std::size_t most_boundaries = 0;
    for (const PipelineTable& pipeline : state_.table) {
      most_stages = std::max(most_stages, pipeline.stages.size());
      most_boundaries = std::max(most_boundaries, pipeline.boundaries.size());
    }
    forward_.assign(most_stages * state_.micro_batches, kNoTask);
    gradient_.assign(most_stages * state_.micro_batches, kNoTask);
    recompute_.assign(most_stages * state_.micro_batches, kNoTask);
    state_.weight_gradient.assign(most_stages * state_.micro_batches, kNoTask);
    send_forward_.assign(most_boundaries * state_.micro_batches, kNoTask);
    send_backward_.assign(most_boundaries * state_.micro_batches, kNoTask);
  }

  void add_list(DeviceId device, const std::vector<Action>& list) {
    LoweredDevice& state = state_.devices[device.index()];
    const Duration overhead = cluster_.devices[device.index()].step_overhead;
    if (!list.empty() && overhead.count() > 0) {
      const WorkId work = state_.step.graph.add_work(Fixed{overhead});
      state.overhead = state_.add_task(device, Lane::kHost, work, make_barrier_action());
    }
    if (reduces_buckets(state_)) mark_last_backwards(device, list);
    for (const Action& action : list) {
      switch (action.kind) {
        case ActionKind::kForward:
        case ActionKind::kBackwardInput:
        case ActionKind::kBackwardWeight:
        case ActionKind::kBackward:
        case ActionKind::kRecompute:
          add_compute(device, action);
          break;
        case ActionKind::kPair:
          add_pair(device, action);
          break;
        case ActionKind::kUpdate:
          add_update(device, action);
          break;
        case ActionKind::kSendForward:
        case ActionKind::kSendBackward:
          add_send(device, action);
          break;
        case ActionKind::kReceiveForward:
        case ActionKind::kReceiveBackward:
          break;  // takes no time of its own
        case ActionKind::kReduceGradients:
          state.has_reduction = true;
          break;
        case ActionKind::kBarrier:
          state.has_barrier = true;
          break;
        case ActionKind::kUnshard:
        case ActionKind::kReshard:
        case ActionKind::kMove:
          refuse(action);
      }
    }
  }

  static bool yields_weight_gradient(ActionKind kind) {
    return kind == ActionKind::kBackward || kind == ActionKind::kBackwardWeight;
  }

  // Those that a bucket of gradients may leave before their end. A pair is never cut.
  void mark_last_backwards(DeviceId device, const std::vector<Action>& list) {
    for (const Action& action : list) {
      if (yields_weight_gradient(action.kind)) {
        state_.tasks_of(action, device).last_backward = &action;
      }
      if (const auto* pair = std::get_if<ActionPair>(&action.detail)) {
        for (const Action& half : pair->halves) {
          state_.tasks_of(half, device).last_backward = nullptr;
        }
      }
    }
  }

  [[noreturn]] static void refuse(const Action& action) {
    throw InfeasibleError("action " + to_text(action) +
                          " is not interpreted yet; the simulator knows F, I, W, B, R, U, pairs, "
                          "SEND, RECV, REDUCE_GRAD and BARRIER of whole micro-batches");
  }

  // The one micro-batch of an action.
  MicroBatchId micro_batch_of(const Action& action) const {
    if (!action.micro_batches || action.micro_batches->count() != 1 || action.slice) refuse(action);
    ENSURE(action.micro_batches->first.index() < state_.micro_batches, "an unknown micro-batch");
    return action.micro_batches->first;
  }

  void require_place(DeviceId device, const Action& action) const {
    ENSURE(device == state_.device_of(action.pipeline, action.stage, micro_batch_of(action)),
           "an action on the list of another device");
  }

  TaskId add_work_task(DeviceId device, WorkId work, const Action& action) {
    LoweredDevice& state = state_.devices[device.index()];
    const TaskId task = state_.add_task(device, Lane::kCompute, work, action);
    if (state.first_compute == kNoTask) state.first_compute = task;
    return task;
  }

  void add_compute(DeviceId device, const Action& action) {
    require_place(device, action);
    const SizeIndex size = state_.size_of(micro_batch_of(action));
    if (state_.tasks_of(action, device).last_backward == &action) {
      add_last_backward(device, action, size);
      return;
    }
    const TaskId task = add_work_task(device, state_.compute_work(device, action, size), action);
    state_.devices[device.index()].last_work = task;
    record(task, action);
  }

  void add_last_backward(DeviceId device, const Action& action, SizeIndex size) {
    TaskId task = kNoTask;
    for (BackwardPiece& piece : cut_last_backward(state_, device, action, size)) {
      task = add_work_task(device, state_.step.graph.add_work(std::move(piece.work)), action);
      state_.tasks_of(action, device).pieces.push_back({piece.lowest, task});
    }
    state_.devices[device.index()].last_work = task;
    record(task, action);
  }

  void add_pair(DeviceId device, const Action& action) {
    const std::vector<Action>& halves = std::get<ActionPair>(action.detail).halves;
    for (const Action& half : halves) require_place(device, half);
    const Action& first = halves.front();
    const Action& second = halves.back();
    const WorkId work = state_.pair_work(device, first, state_.size_of(micro_batch_of(first)),
                                         second, state_.size_of(micro_batch_of(second)));
    const TaskId task = add_work_task(device, work, action);
    state_.devices[device.index()].last_work = task;
    for (const Action& half : halves) record(task, half);
  }

  void add_update(DeviceId device, const Action& action) {
    const auto& devices = state_.stage_of(action).stage->devices;
    ENSURE(std::find(devices.begin(), devices.end(), device) != devices.end(),
           "an update on the list of another device");
    state_.tasks_of(action, device).update =
        add_work_task(device, state_.compute_work(device, action, kWhole), action);
  }

  // Who finds the task by its micro-batch, and what it does to memory.
  void record(TaskId task, const Action& action) {
    const MicroBatchId micro_batch = micro_batch_of(action);
    const std::size_t place = state_.slot(action.stage.index(), micro_batch);
    if (action.kind == ActionKind::kForward) {
      forward_[place] = task;
    } else if (action.kind == ActionKind::kBackwardInput || action.kind == ActionKind::kBackward) {
      gradient_[place] = task;
    } else if (action.kind == ActionKind::kRecompute) {
      recompute_[place] = task;
    }
    if (yields_weight_gradient(action.kind)) state_.weight_gradient[place] = task;
    change_memory(state_, task, action);
  }

  void add_send(DeviceId device, const Action& action) {
    LoweredDevice& state = state_.devices[device.index()];
    if (state.sends_at_once) return;
    const MicroBatchId micro_batch = micro_batch_of(action);
    const PipelineTable& pipeline = state_.table.at(action.pipeline.index());
    const std::size_t b = find_crossed_boundary(pipeline, action);
    const StageBoundary& boundary = pipeline.boundaries[b];
    const bool forward = action.kind == ActionKind::kSendForward;
    const DeviceId to =
        state_.device_of(action.pipeline, forward ? boundary.to : boundary.from, micro_batch);
    if (to == device) return;
    const Bytes size = (forward ? boundary.activation_per_sample : boundary.gradient_per_sample) *
                       state_.samples(state_.size_of(micro_batch));
    const TaskId task =
        state_.add_task(device, Lane::kSend, state_.transfer_work({device, to, size}), action);
    (forward ? send_forward_ : send_backward_)[state_.slot(b, micro_batch)] = task;
  }

  // Where the micro-batch of an action is in a stage of its pipeline.
  DeviceId device_of(const Action& action, StageId stage) const {
    return state_.device_of(action.pipeline, stage, action.micro_batches->first);
  }

  void wait_across(TaskId task, TaskId producer, TaskId send, DeviceId from, DeviceId to) {
    if (from == to) {
      state_.wait(task, producer);
    } else if (send != kNoTask) {
      state_.wait(task, send, state_.hop_work(from, to));
    } else {
      ENSURE(state_.devices[from.index()].sends_at_once,
             "a boundary between devices without its SEND");
      state_.wait(task, producer, state_.hop_work(from, to));
    }
  }

  void wait_for_inputs(TaskId task, const Action& action) {
    const PipelineTable& pipeline = state_.table[action.pipeline.index()];
    const StageEntry& stage = pipeline.stages[action.stage.index()];
    const MicroBatchId micro_batch = action.micro_batches->first;
    for (const std::size_t b : stage.incoming) {
      const StageId from = pipeline.boundaries[b].from;
      wait_across(task, forward_[state_.slot(from.index(), micro_batch)],
                  send_forward_[state_.slot(b, micro_batch)], device_of(action, from),
                  device_of(action, action.stage));
    }
  }

  void wait_for_gradients(TaskId task, const Action& action) {
    const PipelineTable& pipeline = state_.table[action.pipeline.index()];
    const StageEntry& stage = pipeline.stages[action.stage.index()];
    const MicroBatchId micro_batch = action.micro_batches->first;
    const std::size_t own = state_.slot(action.stage.index(), micro_batch);
    state_.wait(task, forward_[own]);
    if (recompute_[own] != kNoTask) state_.wait(task, recompute_[own]);
    for (const std::size_t b : stage.outgoing) {
      if (!pipeline.boundaries[b].carries) continue;
      const StageId to = pipeline.boundaries[b].to;
      wait_across(task, gradient_[state_.slot(to.index(), micro_batch)],
                  send_backward_[state_.slot(b, micro_batch)], device_of(action, to),
                  device_of(action, action.stage));
    }
  }

  void connect(TaskId task) {
    const Action& action = state_.step.actions[task];
    if (is_compute(action.kind)) {
      const LaneId lane = state_.step.graph.lane_of()[task];
      const DeviceId device = state_.step.graph.lanes()[lane].device;
      const LoweredDevice& state = state_.devices[device.index()];
      const bool waits = state_.options.any_order || state.first_compute == task;
      if (state.overhead != kNoTask && waits) state_.wait(task, state.overhead);
    }
    if (const auto* pair = std::get_if<ActionPair>(&action.detail)) {
      for (const Action& half : pair->halves) connect(task, half);
    } else {
      connect(task, action);
    }
  }

  void connect(TaskId task, const Action& action) {
    const auto own = [&] { return state_.slot(action.stage.index(), action.micro_batches->first); };
    if (action.kind == ActionKind::kForward) {
      wait_for_inputs(task, action);
    } else if (action.kind == ActionKind::kSendForward || action.kind == ActionKind::kRecompute) {
      state_.wait(task, forward_[own()]);
    } else if (action.kind == ActionKind::kSendBackward ||
               (action.kind == ActionKind::kBackwardWeight && gradient_[own()] != kNoTask)) {
      state_.wait(task, gradient_[own()]);
    } else if (has_micro_batch(action.kind)) {
      wait_for_gradients(task, action);
    }
  }

  LoweringState state_;
  const Cluster& cluster_;
  std::vector<TaskId> forward_, gradient_, recompute_;  // by stage and micro-batch
  std::vector<TaskId> send_forward_, send_backward_;    // by boundary and micro-batch
};

}  // namespace

LoweredStep lower(const Plan& plan, const Schedule& schedule, const ModelProfile& profile,
                  const Cluster& cluster, const Activity& activity,
                  const LoweringOptions& options) {
  return Lowering(plan, profile, cluster, activity, options).run(schedule);
}

}  // namespace frazil
