#include "planner/lowering/step_copies.h"

#include <map>

#include "profiles/error.h"
#include "traces/action.h"

namespace frazil {
namespace {

void add_tasks(const TaskGraph& step, TaskId offset, TaskGraph& repeated) {
  for (std::size_t task = 0; task < step.size(); ++task) {
    repeated.add_task(step.lane_of()[task], step.work_of()[task]);
  }
  for (const Dependency& dependency : step.dependencies()) {
    repeated.add_dependency(offset + dependency.task, offset + dependency.on, dependency.delay);
  }
  for (MemoryChange change : step.memory_changes()) {
    change.task += offset;
    repeated.change_memory(change);
  }
}

// Pairs the overhead of a device with the last compute task of that device, by their places in a
// step. Other tasks of the host lane join what several devices do: they wait for something.
std::vector<Dependency> find_overheads(const TaskGraph& step) {
  std::vector<bool> waits(step.size());
  for (const Dependency& dependency : step.dependencies()) waits[dependency.task] = true;
  std::map<DeviceId, TaskId> last;
  std::vector<TaskId> overheads;
  for (TaskId task = 0; task < step.size(); ++task) {
    const TaskLane& lane = step.lanes()[step.lane_of()[task]];
    if (lane.lane == Lane::kCompute) last[lane.device] = task;
    if (lane.lane == Lane::kHost && !waits[task]) overheads.push_back(task);
  }
  std::vector<Dependency> pairs;
  for (const TaskId task : overheads) {
    const auto compute = last.find(step.lanes()[step.lane_of()[task]].device);
    if (compute != last.end()) pairs.push_back({task, compute->second});
  }
  return pairs;
}

}  // namespace

TaskGraph repeat_steps(const TaskGraph& step, int steps) {
  ENSURE(steps >= 1, "at least one step");
  TaskGraph repeated;
  const auto times = static_cast<std::size_t>(steps);
  repeated.reserve(times * step.size(), times * step.dependencies().size());
  for (const TaskLane& lane : step.lanes()) repeated.add_lane(lane.device, lane.lane);
  for (const Work& work : step.works()) repeated.add_work(work);
  for (const TaskGraph::Held& held : step.held()) {
    repeated.hold(held.device, held.kind, held.size);
  }
  const std::vector<Dependency> overheads = find_overheads(step);
  for (std::size_t s = 0; s < times; ++s) {
    const auto offset = static_cast<TaskId>(s * step.size());
    add_tasks(step, offset, repeated);
    if (s == 0) continue;
    const auto before = static_cast<TaskId>(offset - step.size());
    for (const Dependency& pair : overheads) {
      repeated.add_dependency(offset + pair.task, before + pair.on);
    }
  }
  return repeated;
}

LoweredStep repeat_steps(const LoweredStep& step, int steps) {
  LoweredStep repeated{repeat_steps(step.graph, steps), {}};
  repeated.actions.reserve(repeated.graph.size());
  for (int s = 0; s < steps; ++s) {
    for (const Action& action : step.actions) {
      set_step(repeated.actions.emplace_back(action), s);
    }
  }
  return repeated;
}

}  // namespace frazil
