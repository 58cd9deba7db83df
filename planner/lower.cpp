#include "planner/lower.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "planner/lowering.h"
#include "profiles/error.h"

namespace frazil {

LaneId LoweringState::lane(DeviceId device, Lane kind) {
  LaneId& lane = devices[device.index()].lanes[static_cast<std::size_t>(kind)];
  if (lane == kNoLane) lane = step.graph.add_lane(device, kind);
  return lane;
}

TaskId LoweringState::add_task(DeviceId device, Lane kind, WorkId work, const Action& action) {
  step.actions.push_back(action);
  return step.graph.add_task(lane(device, kind), work);
}

void LoweringState::wait(TaskId task, TaskId on, WorkId delay) {
  ENSURE(on != kNoTask, "an action waits for one that is in no list");
  const auto& lane_of = step.graph.lane_of();
  if (delay == kNoWork && on < task && lane_of[on] == lane_of[task]) return;
  step.graph.add_dependency(task, on, delay);
}

Action make_barrier_action() {
  return make_stage_action(PipelineId{0}, StageId{0}, ActionKind::kBarrier);
}

namespace {

// Two passes: first every action becomes its task, then tasks are connected in task order, so that
// a dependency may point at any other device's list. Tasks of a micro-batch are found by
// (stage, micro-batch) alone, because a micro-batch has one pipeline.
class Lowering {
 public:
  Lowering(const Plan& plan, const ModelProfile& profile, const Cluster& cluster,
           const Activity& activity)
      : state_{plan, profile, activity, make_stage_table(plan, profile, activity), {}, {}, {}},
        cluster_(cluster),
        micro_batches_(static_cast<std::size_t>(plan.micro_batches())),
        short_size_(samples_in(plan, MicroBatchId{micro_batches_ - 1})) {}

  LoweredStep run(const Schedule& schedule) {
    ENSURE(schedule.devices.size() <= cluster_.devices.size(), "a list of an unknown device");
    describe_stages();
    describe_devices();
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
    for (std::size_t device = 0; device < state_.devices.size(); ++device) {
      hold_state(DeviceId{device});
    }
    return std::move(state_.step);
  }

 private:
  void describe_stages() {
    StageTasks none;
    for (auto& by_size : none.work) by_size.fill(kNoWork);
    std::size_t most_stages = 0;
    std::size_t most_boundaries = 0;
    for (const PipelineTable& pipeline : state_.table) {
      state_.tasks.emplace_back(pipeline.stages.size(), none);
      most_stages = std::max(most_stages, pipeline.stages.size());
      most_boundaries = std::max(most_boundaries, pipeline.boundaries.size());
    }
    forward_.assign(most_stages * micro_batches_, kNoTask);
    gradient_.assign(most_stages * micro_batches_, kNoTask);
    send_forward_.assign(most_boundaries * micro_batches_, kNoTask);
    send_backward_.assign(most_boundaries * micro_batches_, kNoTask);
  }

  void describe_devices() {
    state_.devices.resize(cluster_.devices.size());
    std::vector<bool> has_bandwidth(state_.devices.size(),
                                    cluster_.default_link.bandwidth.count > 0);
    for (const DirectedLink& link : cluster_.links) {
      if (link.link.bandwidth.count > 0) has_bandwidth.at(link.from.index()) = true;
    }
    for (std::size_t d = 0; d < has_bandwidth.size(); ++d) {
      state_.devices[d].sends_at_once = !has_bandwidth[d];
    }
  }

  const StageEntry& stage_of(const Action& action) const {
    return state_.table.at(action.pipeline.index()).stages.at(action.stage.index());
  }
  std::size_t slot(std::size_t row, MicroBatchId micro_batch) const {
    return row * micro_batches_ + micro_batch.index();
  }
  SizeIndex size_of(MicroBatchId micro_batch) const {
    return micro_batch.index() + 1 == micro_batches_ ? kShort : kWhole;
  }
  int samples(SizeIndex size) const {
    return size == kShort ? short_size_ : state_.plan.micro_batch_size;
  }

  void add_list(DeviceId device, const std::vector<Action>& list) {
    LoweredDevice& state = state_.devices[device.index()];
    const Duration overhead = cluster_.devices[device.index()].step_overhead;
    if (!list.empty() && overhead.count() > 0) {
      const WorkId work = state_.step.graph.add_work(Fixed{overhead});
      state.overhead = state_.add_task(device, Lane::kHost, work, make_barrier_action());
    }
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
                          "SEND, RECV, REDUCE_GRAD and BARRIER of whole micro-batches");
  }

  // The one micro-batch of an action.
  MicroBatchId micro_batch_of(const Action& action) const {
    if (!action.micro_batches || action.micro_batches->count() != 1 || action.slice) refuse(action);
    ENSURE(action.micro_batches->first.index() < micro_batches_, "an unknown micro-batch");
    return action.micro_batches->first;
  }

  TaskId add_work_task(DeviceId device, WorkId work, const Action& action) {
    LoweredDevice& state = state_.devices[device.index()];
    const TaskId task = state_.add_task(device, Lane::kCompute, work, action);
    if (state.first_compute == kNoTask) state.first_compute = task;
    return task;
  }

  void add_compute(DeviceId device, const Action& action) {
    ENSURE(stage_of(action).device == device, "an action on the list of another device");
    const SizeIndex size = size_of(micro_batch_of(action));
    const TaskId task = add_work_task(device, compute_work(action, size), action);
    state_.devices[device.index()].last_work = task;
    record(task, action);
  }

  void add_pair(DeviceId device, const Action& action) {
    const std::vector<Action>& halves = std::get<ActionPair>(action.detail).halves;
    for (const Action& half : halves) {
      ENSURE(stage_of(half).device == device, "an action on the list of another device");
    }
    const TaskId task = add_work_task(device, pair_work(halves.front(), halves.back()), action);
    state_.devices[device.index()].last_work = task;
    for (const Action& half : halves) record(task, half);
  }

  void add_update(DeviceId device, const Action& action) {
    ENSURE(stage_of(action).device == device, "an action on the list of another device");
    state_.tasks[action.pipeline.index()][action.stage.index()].update =
        add_work_task(device, compute_work(action, kWhole), action);
  }

  // Who finds the task by its micro-batch, and what it does to memory.
  void record(TaskId task, const Action& action) {
    const MicroBatchId micro_batch = micro_batch_of(action);
    const std::size_t place = slot(action.stage.index(), micro_batch);
    if (action.kind == ActionKind::kForward) {
      forward_[place] = task;
    } else if (action.kind == ActionKind::kBackwardInput || action.kind == ActionKind::kBackward) {
      gradient_[place] = task;
    }
    const StageEntry& stage = stage_of(action);
    change_memory(task, stage, action.kind, stage.footprint[size_of(micro_batch)]);
  }

  Compute make_compute(const Action& action, SizeIndex size) const {
    const StageEntry& stage = stage_of(action);
    return {stage.device, samples(size),
            find_stage_parts(*stage.stage, action.kind, state_.activity)};
  }
  WorkId compute_work(const Action& action, SizeIndex size) {
    StageTasks& tasks = state_.tasks[action.pipeline.index()][action.stage.index()];
    WorkId& work = tasks.work[static_cast<std::size_t>(action.kind)][size];
    if (work == kNoWork) work = state_.step.graph.add_work(make_compute(action, size));
    return work;
  }
  WorkId pair_work(const Action& forward, const Action& backward) {
    const SizeIndex first = size_of(micro_batch_of(forward));
    const SizeIndex second = size_of(micro_batch_of(backward));
    const auto [known, added] =
        pair_works_.try_emplace({forward.pipeline, forward.stage, first, backward.pipeline,
                                 backward.stage, backward.kind, second},
                                kNoWork);
    if (added) {
      known->second = state_.step.graph.add_work(
          ComputePair{make_compute(forward, first), make_compute(backward, second)});
    }
    return known->second;
  }

  // The stash lives from the start of F (of R, but for the inputs, where the stage recomputes) to
  // the end of the last part of its backward; so does a receive buffer, but that of a stage without
  // any backward only as long as its F.
  void change_memory(TaskId task, const StageEntry& stage, ActionKind kind,
                     const StageFootprint& footprint) {
    using When = MemoryChange::When;
    const auto change = [&](When when, MemoryKind memory, Bytes size, int sign) {
      if (size.count == 0) return;
      state_.step.graph.change_memory({task, when, stage.device, memory, sign * size.count});
    };
    const bool recomputes = stage.stage->memory == MemoryPolicy::kRecompute;
    const Bytes input = footprint.input_per_micro_batch;
    const Bytes stash = footprint.stash_per_micro_batch;
    const bool ends = kind == ActionKind::kBackward || kind == ActionKind::kBackwardWeight ||
                      (kind == ActionKind::kBackwardInput && !stage.has_update) ||
                      (kind == ActionKind::kForward && !stage.has_backward);
    if (kind == ActionKind::kForward) {
      change(When::kStart, MemoryKind::kStash, recomputes ? input : stash, 1);
      change(When::kStart, MemoryKind::kReceive, footprint.receive_per_micro_batch, 1);
    }
    if (kind == ActionKind::kRecompute) change(When::kStart, MemoryKind::kStash, stash - input, 1);
    if (ends) {
      change(When::kEnd, MemoryKind::kStash, stash, -1);
      change(When::kEnd, MemoryKind::kReceive, footprint.receive_per_micro_batch, -1);
    }
  }

  void add_send(DeviceId device, const Action& action) {
    LoweredDevice& state = state_.devices[device.index()];
    if (state.sends_at_once) return;
    const MicroBatchId micro_batch = micro_batch_of(action);
    const PipelineTable& pipeline = state_.table.at(action.pipeline.index());
    const std::size_t b = find_crossed_boundary(pipeline, action);
    const StageBoundary& boundary = pipeline.boundaries[b];
    const bool forward = action.kind == ActionKind::kSendForward;
    const DeviceId to = pipeline.stages[(forward ? boundary.to : boundary.from).index()].device;
    if (to == device) return;
    const Bytes size = (forward ? boundary.activation_per_sample : boundary.gradient_per_sample) *
                       samples(size_of(micro_batch));
    const TaskId task =
        state_.add_task(device, Lane::kSend, transfer_work(state, {device, to, size}), action);
    (forward ? send_forward_ : send_backward_)[slot(b, micro_batch)] = task;
  }

  WorkId transfer_work(LoweredDevice& sender, const Transfer& transfer) {
    for (const auto& [known, work] : sender.transfers) {
      if (known == transfer) return work;
    }
    return sender.transfers.emplace_back(transfer, state_.step.graph.add_work(transfer)).second;
  }
  WorkId hop_work(DeviceId from, DeviceId to) {
    auto& hops = state_.devices[from.index()].hops;
    for (const auto& [known, work] : hops) {
      if (known == to) return work;
    }
    return hops.emplace_back(to, state_.step.graph.add_work(Hop{from, to})).second;
  }

  void wait_across(TaskId task, TaskId producer, TaskId send, DeviceId from, DeviceId to) {
    if (from == to) {
      state_.wait(task, producer);
    } else if (send != kNoTask) {
      state_.wait(task, send, hop_work(from, to));
    } else {
      ENSURE(state_.devices[from.index()].sends_at_once,
             "a boundary between devices without its SEND");
      state_.wait(task, producer, hop_work(from, to));
    }
  }

  void wait_for_inputs(TaskId task, const Action& action) {
    const PipelineTable& pipeline = state_.table[action.pipeline.index()];
    const StageEntry& stage = pipeline.stages[action.stage.index()];
    const MicroBatchId micro_batch = action.micro_batches->first;
    for (const std::size_t b : stage.incoming) {
      const StageId from = pipeline.boundaries[b].from;
      wait_across(task, forward_[slot(from.index(), micro_batch)],
                  send_forward_[slot(b, micro_batch)], pipeline.stages[from.index()].device,
                  stage.device);
    }
  }

  void wait_for_gradients(TaskId task, const Action& action) {
    const PipelineTable& pipeline = state_.table[action.pipeline.index()];
    const StageEntry& stage = pipeline.stages[action.stage.index()];
    const MicroBatchId micro_batch = action.micro_batches->first;
    state_.wait(task, forward_[slot(action.stage.index(), micro_batch)]);
    for (const std::size_t b : stage.outgoing) {
      if (!pipeline.boundaries[b].carries) continue;
      const StageId to = pipeline.boundaries[b].to;
      wait_across(task, gradient_[slot(to.index(), micro_batch)],
                  send_backward_[slot(b, micro_batch)], pipeline.stages[to.index()].device,
                  stage.device);
    }
  }

  void connect(TaskId task) {
    const Action& action = state_.step.actions[task];
    if (is_compute(action.kind)) {
      const LaneId lane = state_.step.graph.lane_of()[task];
      const DeviceId device = state_.step.graph.lanes()[lane].device;
      const LoweredDevice& state = state_.devices[device.index()];
      if (state.overhead != kNoTask && state.first_compute == task) {
        state_.wait(task, state.overhead);
      }
    }
    if (const auto* pair = std::get_if<ActionPair>(&action.detail)) {
      for (const Action& half : pair->halves) connect(task, half);
    } else {
      connect(task, action);
    }
  }

  void connect(TaskId task, const Action& action) {
    const auto own = [&] { return slot(action.stage.index(), action.micro_batches->first); };
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

  void hold_state(DeviceId device) {
    const StageFootprint held =
        find_held_state(state_.table, device, state_.plan, state_.profile, state_.activity);
    state_.step.graph.hold(device, MemoryKind::kParameters, held.parameters);
    state_.step.graph.hold(device, MemoryKind::kGradients, held.gradients);
    state_.step.graph.hold(device, MemoryKind::kOptimizer, held.optimizer);
  }

  LoweringState state_;
  const Cluster& cluster_;
  std::size_t micro_batches_;
  int short_size_;
  using PairKey =
      std::tuple<PipelineId, StageId, SizeIndex, PipelineId, StageId, ActionKind, SizeIndex>;
  std::map<PairKey, WorkId> pair_works_;
  std::vector<TaskId> forward_, gradient_;            // by stage and micro-batch
  std::vector<TaskId> send_forward_, send_backward_;  // by boundary and micro-batch
};

}  // namespace

LoweredStep lower(const Plan& plan, const Schedule& schedule, const ModelProfile& profile,
                  const Cluster& cluster, const Activity& activity) {
  return Lowering(plan, profile, cluster, activity).run(schedule);
}

}  // namespace frazil
