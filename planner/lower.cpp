#include "planner/lower.h"

#include <algorithm>
#include <array>
#include <limits>

#include "planner/reduction_groups.h"
#include "planner/stage_work.h"
#include "profiles/error.h"

namespace frazil {
namespace {

constexpr TaskId kNoTask = std::numeric_limits<TaskId>::max();
constexpr LaneId kNoLane = std::numeric_limits<LaneId>::max();

// The tasks and works of one stage.
struct StageTasks {
  std::array<std::array<WorkId, 2>, kActionKinds> work{};  // by kind and SizeIndex
  TaskId update = kNoTask;
};

struct DeviceState {
  std::array<LaneId, 5> lanes{kNoLane, kNoLane, kNoLane, kNoLane, kNoLane};  // by Lane
  bool sends_at_once = false;  // none of its links has a bandwidth: a SEND is its hop alone
  TaskId overhead = kNoTask;
  TaskId first_compute = kNoTask;
  TaskId last_work = kNoTask;  // the last F, I, W or B of its list
  bool has_barrier = false;
  TaskId last_collective = kNoTask;
  std::vector<std::pair<DeviceId, WorkId>> hops;       // by receiver; few, so found by looking
  std::vector<std::pair<Transfer, WorkId>> transfers;  // likewise
};

// Two passes: first every action becomes its task, then tasks are connected in task order, so that
// a dependency may point at any other device's list. Tasks of a micro-batch are found by
// (stage, micro-batch) alone, because a micro-batch has one pipeline.
class Lowering {
 public:
  Lowering(const Plan& plan, const ModelProfile& profile, const Cluster& cluster,
           const Activity& activity)
      : plan_(plan),
        profile_(profile),
        cluster_(cluster),
        activity_(activity),
        table_(make_stage_table(plan, profile, activity)),
        micro_batches_(static_cast<std::size_t>(plan.micro_batches())),
        short_size_(samples_in(plan, MicroBatchId{micro_batches_ - 1})) {}

  LoweredStep run(const Schedule& completed) {
    ENSURE(completed.devices.size() <= cluster_.devices.size(), "a list of an unknown device");
    describe_stages();
    describe_devices();
    std::size_t actions = 0;
    for (const auto& list : completed.devices) actions += list.size();
    step_.graph.reserve(actions, 2 * actions);
    step_.actions.reserve(actions);
    for (std::size_t device = 0; device < completed.devices.size(); ++device) {
      add_list(DeviceId{device}, completed.devices[device]);
    }
    const auto listed = static_cast<TaskId>(step_.graph.size());
    for (TaskId task = 0; task < listed; ++task) connect(task);
    add_collectives();
    add_barrier(listed);
    for (std::size_t device = 0; device < devices_.size(); ++device) hold_state(DeviceId{device});
    return std::move(step_);
  }

 private:
  void describe_stages() {
    StageTasks none;
    for (auto& by_size : none.work) by_size.fill(kNoWork);
    std::size_t most_stages = 0;
    std::size_t most_boundaries = 0;
    for (const PipelineTable& pipeline : table_) {
      tasks_.emplace_back(pipeline.stages.size(), none);
      most_stages = std::max(most_stages, pipeline.stages.size());
      most_boundaries = std::max(most_boundaries, pipeline.boundaries.size());
    }
    forward_.assign(most_stages * micro_batches_, kNoTask);
    gradient_.assign(most_stages * micro_batches_, kNoTask);
    send_forward_.assign(most_boundaries * micro_batches_, kNoTask);
    send_backward_.assign(most_boundaries * micro_batches_, kNoTask);
  }

  void describe_devices() {
    devices_.resize(cluster_.devices.size());
    std::vector<bool> has_bandwidth(devices_.size(), cluster_.default_link.bandwidth.count > 0);
    for (const DirectedLink& link : cluster_.links) {
      if (link.link.bandwidth.count > 0) has_bandwidth.at(link.from.index()) = true;
    }
    for (std::size_t d = 0; d < devices_.size(); ++d) devices_[d].sends_at_once = !has_bandwidth[d];
  }

  LaneId lane(DeviceId device, Lane kind) {
    LaneId& lane = devices_[device.index()].lanes[static_cast<std::size_t>(kind)];
    if (lane == kNoLane) lane = step_.graph.add_lane(device, kind);
    return lane;
  }
  TaskId add_task(DeviceId device, Lane kind, WorkId work, const Action& action) {
    step_.actions.push_back(action);
    return step_.graph.add_task(lane(device, kind), work);
  }
  const StageEntry& stage_of(const Action& action) const {
    return table_.at(action.pipeline.index()).stages.at(action.stage.index());
  }
  std::size_t slot(std::size_t row, MicroBatchId micro_batch) const {
    return row * micro_batches_ + micro_batch.index();
  }
  SizeIndex size_of(MicroBatchId micro_batch) const {
    return micro_batch.index() + 1 == micro_batches_ ? kShort : kWhole;
  }
  int samples(SizeIndex size) const {
    return size == kShort ? short_size_ : plan_.micro_batch_size;
  }

  void add_list(DeviceId device, const std::vector<Action>& list) {
    DeviceState& state = devices_[device.index()];
    const Duration overhead = cluster_.devices[device.index()].step_overhead;
    if (!list.empty() && overhead.count() > 0) {
      const WorkId work = step_.graph.add_work(Fixed{overhead});
      state.overhead = add_task(device, Lane::kHost, work, barrier_action());
    }
    for (const Action& action : list) {
      switch (action.kind) {
        case ActionKind::kForward:
        case ActionKind::kBackwardInput:
        case ActionKind::kBackwardWeight:
        case ActionKind::kBackward:
        case ActionKind::kUpdate:
          add_compute(device, action);
          break;
        case ActionKind::kSendForward:
        case ActionKind::kSendBackward:
          add_send(device, action);
          break;
        case ActionKind::kReceiveForward:
        case ActionKind::kReceiveBackward:
        case ActionKind::kReduceGradients:
          break;  // no time of its own; collectives follow from the plan
        case ActionKind::kBarrier:
          state.has_barrier = true;
          break;
        case ActionKind::kRecompute:
        case ActionKind::kUnshard:
        case ActionKind::kReshard:
        case ActionKind::kPair:
        case ActionKind::kMove:
          refuse(action);
      }
    }
  }

  [[noreturn]] static void refuse(const Action& action) {
    throw InfeasibleError("action " + to_text(action) +
                          " is not interpreted yet; the simulator knows F, I, W, B, U, SEND, RECV, "
                          "REDUCE_GRAD and BARRIER of whole micro-batches");
  }

  static Action barrier_action() {
    return make_stage_action(PipelineId{0}, StageId{0}, ActionKind::kBarrier);
  }

  // The one micro-batch of an action.
  MicroBatchId micro_batch_of(const Action& action) const {
    if (!action.micro_batches || action.micro_batches->count() != 1 || action.slice) refuse(action);
    ENSURE(action.micro_batches->first.index() < micro_batches_, "an unknown micro-batch");
    return action.micro_batches->first;
  }

  void add_compute(DeviceId device, const Action& action) {
    const StageEntry& stage = stage_of(action);
    ENSURE(stage.device == device, "an action on the list of another device");
    DeviceState& state = devices_[device.index()];
    const bool update = action.kind == ActionKind::kUpdate;
    const MicroBatchId micro_batch = update ? MicroBatchId{} : micro_batch_of(action);
    const SizeIndex size = update ? kWhole : size_of(micro_batch);
    const TaskId task = add_task(device, Lane::kCompute, compute_work(action, size), action);
    if (state.first_compute == kNoTask) state.first_compute = task;
    if (update) {
      tasks_[action.pipeline.index()][action.stage.index()].update = task;
      return;
    }
    state.last_work = task;
    if (action.kind == ActionKind::kForward) {
      forward_[slot(action.stage.index(), micro_batch)] = task;
    } else if (action.kind != ActionKind::kBackwardWeight) {
      gradient_[slot(action.stage.index(), micro_batch)] = task;
    }
    change_memory(task, stage, action.kind, stage.footprint[size]);
  }

  WorkId compute_work(const Action& action, SizeIndex size) {
    StageTasks& tasks = tasks_[action.pipeline.index()][action.stage.index()];
    WorkId& work = tasks.work[static_cast<std::size_t>(action.kind)][size];
    if (work == kNoWork) {
      const StageEntry& stage = stage_of(action);
      work = step_.graph.add_work(Compute{stage.device, samples(size),
                                          find_stage_parts(*stage.stage, action.kind, activity_)});
    }
    return work;
  }

  // The stash lives from the start of F to the end of the last part of its backward; so does a
  // receive buffer, but that of a stage without any backward only as long as its F.
  void change_memory(TaskId task, const StageEntry& stage, ActionKind kind,
                     const StageFootprint& footprint) {
    using When = MemoryChange::When;
    const auto change = [&](When when, MemoryKind memory, Bytes size, int sign) {
      if (size.count == 0) return;
      step_.graph.change_memory({task, when, stage.device, memory, sign * size.count});
    };
    const bool ends = kind == ActionKind::kBackward || kind == ActionKind::kBackwardWeight ||
                      (kind == ActionKind::kBackwardInput && !stage.has_update) ||
                      (kind == ActionKind::kForward && !stage.has_backward);
    if (kind == ActionKind::kForward) {
      change(When::kStart, MemoryKind::kStash, footprint.stash_per_micro_batch, 1);
      change(When::kStart, MemoryKind::kReceive, footprint.receive_per_micro_batch, 1);
    }
    if (ends) {
      change(When::kEnd, MemoryKind::kStash, footprint.stash_per_micro_batch, -1);
      change(When::kEnd, MemoryKind::kReceive, footprint.receive_per_micro_batch, -1);
    }
  }

  void add_send(DeviceId device, const Action& action) {
    DeviceState& state = devices_[device.index()];
    if (state.sends_at_once) return;
    const MicroBatchId micro_batch = micro_batch_of(action);
    const PipelineTable& pipeline = table_.at(action.pipeline.index());
    const std::size_t b = find_crossed_boundary(pipeline, action);
    const StageBoundary& boundary = pipeline.boundaries[b];
    const bool forward = action.kind == ActionKind::kSendForward;
    const DeviceId to = pipeline.stages[(forward ? boundary.to : boundary.from).index()].device;
    if (to == device) return;
    const Bytes size = (forward ? boundary.activation_per_sample : boundary.gradient_per_sample) *
                       samples(size_of(micro_batch));
    const TaskId task =
        add_task(device, Lane::kSend, transfer_work(state, {device, to, size}), action);
    (forward ? send_forward_ : send_backward_)[slot(b, micro_batch)] = task;
  }

  WorkId transfer_work(DeviceState& sender, const Transfer& transfer) {
    for (const auto& [known, work] : sender.transfers) {
      if (known == transfer) return work;
    }
    return sender.transfers.emplace_back(transfer, step_.graph.add_work(transfer)).second;
  }
  WorkId hop_work(DeviceId from, DeviceId to) {
    auto& hops = devices_[from.index()].hops;
    for (const auto& [known, work] : hops) {
      if (known == to) return work;
    }
    return hops.emplace_back(to, step_.graph.add_work(Hop{from, to})).second;
  }

  // Waits for an earlier task of the same lane are implied by the lane.
  void wait(TaskId task, TaskId on, WorkId delay = kNoWork) {
    ENSURE(on != kNoTask, "an action waits for one that is in no list");
    const auto& lane_of = step_.graph.lane_of();
    if (delay == kNoWork && on < task && lane_of[on] == lane_of[task]) return;
    step_.graph.add_dependency(task, on, delay);
  }

  void wait_across(TaskId task, TaskId producer, TaskId send, DeviceId from, DeviceId to) {
    if (from == to) {
      wait(task, producer);
    } else if (send != kNoTask) {
      wait(task, send, hop_work(from, to));
    } else {
      ENSURE(devices_[from.index()].sends_at_once, "a boundary between devices without its SEND");
      wait(task, producer, hop_work(from, to));
    }
  }

  void wait_for_inputs(TaskId task, const Action& action) {
    const PipelineTable& pipeline = table_[action.pipeline.index()];
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
    const PipelineTable& pipeline = table_[action.pipeline.index()];
    const StageEntry& stage = pipeline.stages[action.stage.index()];
    const MicroBatchId micro_batch = action.micro_batches->first;
    wait(task, forward_[slot(action.stage.index(), micro_batch)]);
    for (const std::size_t b : stage.outgoing) {
      if (!pipeline.boundaries[b].carries) continue;
      const StageId to = pipeline.boundaries[b].to;
      wait_across(task, gradient_[slot(to.index(), micro_batch)],
                  send_backward_[slot(b, micro_batch)], pipeline.stages[to.index()].device,
                  stage.device);
    }
  }

  void connect(TaskId task) {
    const Action& action = step_.actions[task];
    const auto own = [&] { return slot(action.stage.index(), action.micro_batches->first); };
    if (is_compute(action.kind)) {
      const DeviceState& device = devices_[stage_of(action).device.index()];
      if (device.overhead != kNoTask && device.first_compute == task) wait(task, device.overhead);
    }
    if (action.kind == ActionKind::kForward) {
      wait_for_inputs(task, action);
    } else if (action.kind == ActionKind::kSendForward) {
      wait(task, forward_[own()]);
    } else if (action.kind == ActionKind::kSendBackward ||
               (action.kind == ActionKind::kBackwardWeight && gradient_[own()] != kNoTask)) {
      wait(task, gradient_[own()]);
    } else if (has_micro_batch(action.kind)) {
      wait_for_gradients(task, action);
    }
  }

  // The owners of a group enter together: one task without time waits for all of them, and their
  // collectives wait for it. It stands on the host lane of the first owner, where nothing else can
  // hold it up: that owner's collectives follow each other in the same order.
  void add_collectives() {
    const WorkId nothing = step_.graph.add_work(Fixed{});
    for (const ReductionGroup& group : find_reduction_groups(plan_, profile_, activity_)) {
      const WorkId work = step_.graph.add_work(group.collective);
      const auto action_of = [&](DeviceId device) {
        const auto owner = std::find_if(group.owners.begin(), group.owners.end(),
                                        [&](const ReductionOwner& candidate) {
                                          return stage_entry(candidate).device == device;
                                        });
        return make_stage_action(owner->pipeline, owner->stage, ActionKind::kReduceGradients);
      };
      const DeviceId first = group.collective.devices.front();
      const TaskId entry = add_task(first, Lane::kHost, nothing, action_of(first));
      for (const DeviceId device : group.collective.devices) {
        DeviceState& state = devices_[device.index()];
        if (state.last_work != kNoTask) wait(entry, state.last_work);
        if (state.last_collective != kNoTask) wait(entry, state.last_collective);
        state.last_collective = add_task(device, Lane::kCollective, work, action_of(device));
        wait(state.last_collective, entry);
      }
      for (const ReductionOwner& owner : group.owners) {
        const TaskId update = tasks_[owner.pipeline.index()][owner.stage.index()].update;
        if (update == kNoTask) continue;
        wait(update, devices_[stage_entry(owner).device.index()].last_collective);
      }
    }
  }
  const StageEntry& stage_entry(const ReductionOwner& owner) const {
    return table_[owner.pipeline.index()].stages[owner.stage.index()];
  }

  // A barrier holds every update back until all gradients of all devices are there.
  void add_barrier(TaskId listed) {
    const bool any = std::any_of(devices_.begin(), devices_.end(),
                                 [](const DeviceState& device) { return device.has_barrier; });
    if (!any) return;
    const TaskId barrier =
        add_task(DeviceId{0}, Lane::kHost, step_.graph.add_work(Fixed{}), barrier_action());
    for (const DeviceState& device : devices_) {
      if (device.last_work != kNoTask) wait(barrier, device.last_work);
      if (device.last_collective != kNoTask) wait(barrier, device.last_collective);
    }
    for (TaskId task = 0; task < listed; ++task) {
      if (step_.actions[task].kind == ActionKind::kUpdate) wait(task, barrier);
    }
  }

  void hold_state(DeviceId device) {
    const StageFootprint held = find_held_state(table_, device, plan_, profile_, activity_);
    step_.graph.hold(device, MemoryKind::kParameters, held.parameters);
    step_.graph.hold(device, MemoryKind::kGradients, held.gradients);
    step_.graph.hold(device, MemoryKind::kOptimizer, held.optimizer);
  }

  const Plan& plan_;
  const ModelProfile& profile_;
  const Cluster& cluster_;
  const Activity& activity_;
  std::vector<PipelineTable> table_;
  std::size_t micro_batches_;
  int short_size_;
  LoweredStep step_;
  std::vector<std::vector<StageTasks>> tasks_;  // by pipeline and stage
  std::vector<DeviceState> devices_;
  std::vector<TaskId> forward_, gradient_;            // by stage and micro-batch
  std::vector<TaskId> send_forward_, send_backward_;  // by boundary and micro-batch
};

}  // namespace

LoweredStep lower(const Plan& plan, const Schedule& completed, const ModelProfile& profile,
                  const Cluster& cluster, const Activity& activity) {
  return Lowering(plan, profile, cluster, activity).run(completed);
}

}  // namespace frazil
