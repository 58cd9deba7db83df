// Implements the part of planner/lowering/lowering_state.h on the collectives of a step, after the
// last backwards.
#include "planner/lowering/lowering_state.h"

#include <algorithm>

#include "planner/lowering/reduction_memory.h"

namespace frazil {
namespace {

// Returns the last task that adds to an owner's gradients; kNoTask if the owner has no micro-batch.
TaskId find_last_gradient(const LoweringState& state, const LayerHolder& owner) {
  TaskId last = kNoTask;
  const std::size_t row = state.row_of(owner);
  for (const MicroBatches& owned : owner.micro_batches) {
    for (MicroBatchId m = owned.first; m <= owned.last; ++m.value) {
      const TaskId task = state.weight_gradient[state.slot(row, m)];
      if (task != kNoTask) last = last == kNoTask ? task : std::max(last, task);
    }
  }
  return last;
}

// Makes `entry` wait for the gradients of a bucket on every owner. A backward inside a pair is
// never cut, so `entry` waits for all of that backward.
void wait_for_bucket(LoweringState& state, const ReductionGroup& bucket, TaskId entry) {
  for (const LayerHolder& owner : bucket.owners) {
    const auto& pieces = state.tasks_of(owner.pipeline, owner.stage, owner.device).pieces;
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

// Frees the shares that have arrived when the gather is through.
void release_shares(LoweringState& state, const std::vector<TaskId>& shipments) {
  for (const TaskId shipment : shipments) {
    const auto& transfer =
        std::get<Transfer>(state.step.graph.works()[state.step.graph.work_of()[shipment]]);
    const TaskId gather = state.devices[transfer.to.index()].last_collective;
    state.step.graph.change_memory({gather, MemoryChange::When::kEnd, transfer.to,
                                    MemoryKind::kGradients, -transfer.size.count});
  }
}

TaskId add_group(LoweringState& state, const ReductionGroup& group, const Collective& collective) {
  std::vector<Action> actions;
  for (const DeviceId device : collective.devices) actions.push_back(name_reduction(group, device));
  const TaskId entry = add_collective(state, collective, actions);
  const std::vector<Bytes> memory = ships_nodes(state) ? find_gather_memory(group, state.plan)
                                                       : find_reduction_memory(group, state.plan);
  for (std::size_t d = 0; d < collective.devices.size(); ++d) {
    hold_gradients(state, collective.devices[d], memory[d]);
  }
  for (const LayerHolder& owner : group.owners) {
    const TaskId update = state.tasks_of(owner.pipeline, owner.stage, owner.device).update;
    if (update == kNoTask) continue;
    state.wait(update, state.devices[owner.device.index()].last_collective);
  }
  return entry;
}

}  // namespace

void hold_gradients(LoweringState& state, DeviceId device, Bytes size) {
  using When = MemoryChange::When;
  if (size.count == 0) return;
  const TaskId task = state.devices[device.index()].last_collective;
  TaskGraph& graph = state.step.graph;
  graph.change_memory({task, When::kStart, device, MemoryKind::kGradients, size.count});
  graph.change_memory({task, When::kEnd, device, MemoryKind::kGradients, -size.count});
}

Action name_reduction(const ReductionGroup& group, DeviceId device) {
  const auto owner =
      std::find_if(group.owners.begin(), group.owners.end(),
                   [&](const LayerHolder& candidate) { return candidate.device == device; });
  return make_stage_action(owner->pipeline, owner->stage, ActionKind::kReduceGradients);
}

void wait_for_backwards(LoweringState& state, const Collective& collective, TaskId entry) {
  for (const DeviceId id : collective.devices) {
    const TaskId last = state.devices[id.index()].last_work;
    if (last != kNoTask) state.wait(entry, last);
  }
}

TaskId add_collective(LoweringState& state, const Collective& collective,
                      const std::vector<Action>& actions) {
  TaskGraph& graph = state.step.graph;
  const WorkId work = graph.add_work(collective);
  const TaskId entry =
      state.add_task(collective.devices.front(), Lane::kHost, state.no_work, actions.front());
  for (std::size_t d = 0; d < collective.devices.size(); ++d) {
    LoweredDevice& device = state.devices[collective.devices[d].index()];
    if (device.last_collective != kNoTask) state.wait(entry, device.last_collective);
    device.last_collective =
        state.add_task(collective.devices[d], Lane::kCollective, work, actions[d]);
    state.wait(device.last_collective, entry);
  }
  return entry;
}

void add_collectives(LoweringState& state) {
  const bool any = std::any_of(state.devices.begin(), state.devices.end(),
                               [](const LoweredDevice& device) { return device.has_reduction; });
  if (!any) return;
  if (!state.options.overlap) {
    state.reductions = find_reduction_groups(state.plan, state.profile, state.activity);
  }
  state.no_work = state.step.graph.add_work(Fixed{});
  std::vector<std::vector<TaskId>> shipments;
  if (ships_nodes(state)) shipments = ship_nodes(state);
  for (std::size_t r = 0; r < state.reductions.size(); ++r) {
    const ReductionGroup& group = state.reductions[r];
    Collective collective = group.collective;
    if (ships_nodes(state)) {
      collective.kind = CollectiveKind::kAllGather;
      collective.owned.clear();
    }
    const TaskId entry = add_group(state, group, collective);
    if (ships_nodes(state)) {
      wait_for_shipments(state, shipments[r], entry);
      release_shares(state, shipments[r]);
    } else if (reduces_buckets(state)) {
      wait_for_bucket(state, group, entry);
    } else {
      wait_for_backwards(state, group.collective, entry);
    }
  }
  add_tied_exchanges(state);
}

void add_barrier(LoweringState& state, TaskId listed, Duration round) {
  const bool any = std::any_of(state.devices.begin(), state.devices.end(),
                               [](const LoweredDevice& device) { return device.has_barrier; });
  if (!any) return;
  const WorkId work = state.step.graph.add_work(Fixed{round});
  const TaskId barrier = state.add_task(DeviceId{0}, Lane::kHost, work, make_barrier_action());
  for (const LoweredDevice& device : state.devices) {
    if (device.last_work != kNoTask) state.wait(barrier, device.last_work);
    if (device.last_collective != kNoTask) state.wait(barrier, device.last_collective);
  }
  for (TaskId task = 0; task < listed; ++task) {
    if (state.step.actions[task].kind == ActionKind::kUpdate) state.wait(task, barrier);
  }
}

}  // namespace frazil
