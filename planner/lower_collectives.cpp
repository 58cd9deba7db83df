#include <algorithm>

#include "planner/lowering.h"

namespace frazil {
namespace {

const StageEntry& entry_of(const LoweringState& state, const ReductionOwner& owner) {
  return state.table[owner.pipeline.index()].stages[owner.stage.index()];
}

// Every device's gradients are complete.
void wait_for_backwards(LoweringState& state, const ReductionGroup& group, TaskId entry) {
  for (const DeviceId id : group.collective.devices) {
    const TaskId last = state.devices[id.index()].last_work;
    if (last != kNoTask) state.wait(entry, last);
  }
}

// The last task that adds to an owner's gradients; none of an owner without micro-batches.
TaskId find_last_gradient(const LoweringState& state, const ReductionOwner& owner) {
  TaskId last = kNoTask;
  for (const MicroBatches& owned : state.plan.pipelines[owner.pipeline.index()].micro_batches) {
    for (MicroBatchId m = owned.first; m <= owned.last; ++m.value) {
      const TaskId task = state.weight_gradient[state.slot(owner.stage.index(), m)];
      if (task != kNoTask) last = last == kNoTask ? task : std::max(last, task);
    }
  }
  return last;
}

// A backward inside a pair is never cut: then the whole of it is waited for.
void wait_for_bucket(LoweringState& state, const ReductionGroup& bucket, TaskId entry) {
  for (const ReductionOwner& owner : bucket.owners) {
    const auto& pieces = state.tasks[owner.pipeline.index()][owner.stage.index()].pieces;
    if (pieces.empty()) {
      const TaskId last = find_last_gradient(state, owner);
      if (last != kNoTask) state.wait(entry, last);
      continue;
    }
    const auto piece = std::find_if(pieces.begin(), pieces.end(), [&](const GradientPiece& each) {
      return each.lowest <= bucket.layers.front();
    });
    if (piece != pieces.end()) state.wait(entry, piece->task);
  }
}

void wait_for_shipments(LoweringState& state, const std::vector<TaskId>& shipments, TaskId entry) {
  for (const TaskId shipment : shipments) {
    const auto& transfer =
        std::get<Transfer>(state.step.graph.works()[state.step.graph.work_of()[shipment]]);
    const WorkId hop = state.hop_work(transfer.from, transfer.to);
    state.wait(entry, shipment, hop);
  }
}

// Shares that have arrived are held until the gather is through.
void release_shares(LoweringState& state, const std::vector<TaskId>& shipments) {
  for (const TaskId shipment : shipments) {
    const auto& transfer =
        std::get<Transfer>(state.step.graph.works()[state.step.graph.work_of()[shipment]]);
    const TaskId gather = state.devices[transfer.to.index()].last_collective;
    state.step.graph.change_memory({gather, MemoryChange::When::kEnd, transfer.to,
                                    MemoryKind::kGradients, -transfer.size.count});
  }
}

// The owners of a group enter together: one task without time, the result, waits for all of them,
// and their collectives wait for it. It stands on the host lane of the first owner, where nothing
// else can hold it up: that owner's collectives follow each other in the same order.
TaskId add_group(LoweringState& state, const ReductionGroup& group, const Collective& collective,
                 WorkId nothing) {
  const WorkId work = state.step.graph.add_work(collective);
  const DeviceId first = collective.devices.front();
  const TaskId entry =
      state.add_task(first, Lane::kHost, nothing, name_reduction(state, group, first));
  for (const DeviceId id : collective.devices) {
    LoweredDevice& device = state.devices[id.index()];
    if (device.last_collective != kNoTask) state.wait(entry, device.last_collective);
    device.last_collective =
        state.add_task(id, Lane::kCollective, work, name_reduction(state, group, id));
    state.wait(device.last_collective, entry);
  }
  for (const ReductionOwner& owner : group.owners) {
    const TaskId update = state.tasks[owner.pipeline.index()][owner.stage.index()].update;
    if (update == kNoTask) continue;
    state.wait(update, state.devices[entry_of(state, owner).device.index()].last_collective);
  }
  return entry;
}

}  // namespace

Action name_reduction(const LoweringState& state, const ReductionGroup& group, DeviceId device) {
  const auto owner = std::find_if(
      group.owners.begin(), group.owners.end(),
      [&](const ReductionOwner& candidate) { return entry_of(state, candidate).device == device; });
  return make_stage_action(owner->pipeline, owner->stage, ActionKind::kReduceGradients);
}

void add_collectives(LoweringState& state) {
  const bool any = std::any_of(state.devices.begin(), state.devices.end(),
                               [](const LoweredDevice& device) { return device.has_reduction; });
  if (!any) return;
  if (!state.options.overlap) {
    state.reductions = find_reduction_groups(state.plan, state.profile, state.activity);
  }
  const WorkId nothing = state.step.graph.add_work(Fixed{});
  std::vector<std::vector<TaskId>> shipments;
  if (ships_nodes(state)) shipments = ship_nodes(state);
  for (std::size_t r = 0; r < state.reductions.size(); ++r) {
    const ReductionGroup& group = state.reductions[r];
    Collective collective = group.collective;
    if (ships_nodes(state)) {
      collective.kind = CollectiveKind::kAllGather;
      collective.owned.clear();
    }
    const TaskId entry = add_group(state, group, collective, nothing);
    if (ships_nodes(state)) {
      wait_for_shipments(state, shipments[r], entry);
      release_shares(state, shipments[r]);
    } else if (reduces_buckets(state)) {
      wait_for_bucket(state, group, entry);
    } else {
      wait_for_backwards(state, group, entry);
    }
  }
}

void add_barrier(LoweringState& state, TaskId listed) {
  const bool any = std::any_of(state.devices.begin(), state.devices.end(),
                               [](const LoweredDevice& device) { return device.has_barrier; });
  if (!any) return;
  const WorkId nothing = state.step.graph.add_work(Fixed{});
  const TaskId barrier = state.add_task(DeviceId{0}, Lane::kHost, nothing, make_barrier_action());
  for (const LoweredDevice& device : state.devices) {
    if (device.last_work != kNoTask) state.wait(barrier, device.last_work);
    if (device.last_collective != kNoTask) state.wait(barrier, device.last_collective);
  }
  for (TaskId task = 0; task < listed; ++task) {
    if (state.step.actions[task].kind == ActionKind::kUpdate) state.wait(task, barrier);
  }
}

}  // namespace frazil
