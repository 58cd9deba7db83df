#include <algorithm>

#include "planner/lowering.h"
#include "planner/reduction_groups.h"

namespace frazil {
namespace {

const StageEntry& entry_of(const LoweringState& state, const ReductionOwner& owner) {
  return state.table[owner.pipeline.index()].stages[owner.stage.index()];
}

Action name_reduction(const LoweringState& state, const ReductionGroup& group, DeviceId device) {
  const auto owner = std::find_if(
      group.owners.begin(), group.owners.end(),
      [&](const ReductionOwner& candidate) { return entry_of(state, candidate).device == device; });
  return make_stage_action(owner->pipeline, owner->stage, ActionKind::kReduceGradients);
}

// The owners of a group enter together: one task without time waits for all of them, and their
// collectives wait for it. It stands on the host lane of the first owner, where nothing else can
// hold it up: that owner's collectives follow each other in the same order.
void add_group(LoweringState& state, const ReductionGroup& group, WorkId nothing) {
  const WorkId work = state.step.graph.add_work(group.collective);
  const DeviceId first = group.collective.devices.front();
  const TaskId entry =
      state.add_task(first, Lane::kHost, nothing, name_reduction(state, group, first));
  for (const DeviceId id : group.collective.devices) {
    LoweredDevice& device = state.devices[id.index()];
    if (device.last_work != kNoTask) state.wait(entry, device.last_work);
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
}

}  // namespace

void add_collectives(LoweringState& state) {
  const bool any = std::any_of(state.devices.begin(), state.devices.end(),
                               [](const LoweredDevice& device) { return device.has_reduction; });
  if (!any) return;
  const WorkId nothing = state.step.graph.add_work(Fixed{});
  for (const ReductionGroup& group :
       find_reduction_groups(state.plan, state.profile, state.activity)) {
    add_group(state, group, nothing);
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
