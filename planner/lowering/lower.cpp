#include "planner/lowering/lower.h"

#include <algorithm>

#include "planner/lowering/lowering_state.h"
#include "planner/plan/commit_round.h"
#include "profiles/error.h"

namespace frazil {
namespace {

// Lowers in two passes: first every action becomes its task, then tasks are connected in task
// order, so that a dependency may point at the list of any device. The pair (part of a stage,
// micro-batch) finds a task, because a micro-batch has one pipeline.
class Lowering {
 public:
  Lowering(const Plan& plan, Setting setting, const Activity& activity,
           const LoweringOptions& options)
      : state_(begin_lowering(plan, setting, activity, options)),
        crossings_(state_.table),
        cluster_(setting.cluster()) {}

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
    const auto round = find_commit_round(state_.plan, cluster_);
    add_barrier(state_, listed, round.value_or(Duration{0}));
    hold_states(state_);
    return std::move(state_.step);
  }

 private:
  void make_room_for_tasks() {
    const std::size_t tasks = state_.rows.count() * state_.micro_batches;
    forward_.assign(tasks, kNoTask);
    gradient_.assign(tasks, kNoTask);
    recompute_.assign(tasks, kNoTask);
    state_.weight_gradient.assign(tasks, kNoTask);
    send_forward_.assign(crossings_.count() * state_.micro_batches, kNoTask);
    send_backward_.assign(crossings_.count() * state_.micro_batches, kNoTask);
  }

  // Returns the index in send_forward_ and send_backward_ of the SEND over a boundary, from slice
  // `from` of its first stage to slice `to` of its second stage.
  std::size_t crossing(const Action& action, std::size_t boundary, std::optional<std::int32_t> from,
                       std::optional<std::int32_t> to) const {
    return state_.slot(crossings_.of(action.pipeline, boundary, from, to),
                       action.micro_batches->first);
  }

  void add_list(DeviceId device, const std::vector<Action>& list) {
    LoweredDevice& state = state_.devices[device.index()];
    const Duration overhead = cluster_.devices[device.index()].step_overhead;
    if (!list.empty() && overhead.count() > 0) {
      const WorkId work = state_.step.graph.add_work(Fixed{overhead});
      state.overhead = state_.add_task(device, Lane::kHost, work, make_barrier_action());
    }
    if (reduces_buckets(state_)) mark_last_backwards(state_, device, list);
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

  [[noreturn]] static void refuse(const Action& action) {
    throw InfeasibleError("action " + to_text(action) +
                          " is not interpreted yet; the simulator knows F, I, W, B, R, U, pairs, "
                          "SEND, RECV, REDUCE_GRAD and BARRIER of single micro-batches");
  }

  // Returns the one micro-batch of an action; refuses an action of several.
  MicroBatchId micro_batch_of(const Action& action) const {
    if (!action.micro_batches || action.micro_batches->count() != 1) refuse(action);
    ENSURE(action.micro_batches->first.index() < state_.micro_batches, "an unknown micro-batch");
    return action.micro_batches->first;
  }

  void require_place(DeviceId device, const Action& action) const {
    ENSURE(device == state_.device_of(action), "an action on the list of another device");
  }

  TaskId add_work_task(DeviceId device, WorkId work, const Action& action) {
    LoweredDevice& state = state_.devices[device.index()];
    const TaskId task = state_.add_task(device, Lane::kCompute, work, action);
    if (state.first_compute == kNoTask) state.first_compute = task;
    return task;
  }

  void add_compute(DeviceId device, const Action& action) {
    const SizeIndex size = state_.size_of(micro_batch_of(action));
    require_place(device, action);
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
    const Action& first = halves.front();
    const Action& second = halves.back();
    const WorkId work = state_.pair_work(device, first, state_.size_of(micro_batch_of(first)),
                                         second, state_.size_of(micro_batch_of(second)));
    for (const Action& half : halves) require_place(device, half);
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

  // Notes the task under its micro-batch and adds its changes of memory.
  void record(TaskId task, const Action& action) {
    const std::size_t place = state_.slot(action);
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
    const PipelineTable& pipeline = state_.table.at(action.pipeline.index());
    const std::size_t b = find_crossed_boundary(pipeline, action);
    const StageBoundary& boundary = pipeline.boundaries[b];
    const bool forward = action.kind == ActionKind::kSendForward;
    const Bytes per_sample =
        forward ? boundary.activation_per_sample : boundary.gradient_per_sample;
    state_.visit_peers(action, forward ? boundary.to : boundary.from, [&](const StagePart& peer) {
      if (peer.slice != action.peer_slice || peer.device == device) return;
      const Bytes size = per_sample * peer.samples.count();
      const TaskId task = state_.add_task(
          device, Lane::kSend, state_.transfer_work({device, peer.device, size}), action);
      if (forward) {
        send_forward_[crossing(action, b, action.slice, peer.slice)] = task;
      } else {
        send_backward_[crossing(action, b, peer.slice, action.slice)] = task;
      }
    });
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

  std::size_t slot(const Action& action, StageId peer_stage, const StagePart& peer) const {
    return state_.slot(state_.rows.of(action.pipeline, peer_stage, peer.slice),
                       action.micro_batches->first);
  }

  void wait_for_inputs(TaskId task, const Action& action) {
    const PipelineTable& pipeline = state_.table[action.pipeline.index()];
    const StageEntry& stage = pipeline.stages[action.stage.index()];
    const DeviceId here = state_.device_of(action);
    for (const std::size_t b : stage.incoming) {
      const StageId from = pipeline.boundaries[b].from;
      state_.visit_peers(action, from, [&](const StagePart& peer) {
        wait_across(task, forward_[slot(action, from, peer)],
                    send_forward_[crossing(action, b, peer.slice, action.slice)], peer.device,
                    here);
      });
    }
  }

  void wait_for_gradients(TaskId task, const Action& action) {
    const PipelineTable& pipeline = state_.table[action.pipeline.index()];
    const StageEntry& stage = pipeline.stages[action.stage.index()];
    const DeviceId here = state_.device_of(action);
    const std::size_t own = state_.slot(action);
    state_.wait(task, forward_[own]);
    if (recompute_[own] != kNoTask) state_.wait(task, recompute_[own]);
    for (const std::size_t b : stage.outgoing) {
      if (!pipeline.boundaries[b].carries) continue;
      const StageId to = pipeline.boundaries[b].to;
      state_.visit_peers(action, to, [&](const StagePart& peer) {
        wait_across(task, gradient_[slot(action, to, peer)],
                    send_backward_[crossing(action, b, action.slice, peer.slice)], peer.device,
                    here);
      });
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
    const auto own = [&] { return state_.slot(action); };
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
  CrossingRows crossings_;
  const Cluster& cluster_;
  std::vector<TaskId> forward_, gradient_, recompute_;  // by part of a stage and micro-batch
  std::vector<TaskId> send_forward_, send_backward_;    // by crossing and micro-batch
};

}  // namespace

LoweredStep lower(const Plan& plan, const Schedule& schedule, Setting setting,
                  const Activity& activity, const LoweringOptions& options) {
  return Lowering(plan, setting, activity, options).run(schedule);
}

}  // namespace frazil
