#pragma once
// The state of one lowering, for planner/lower.cpp and its parts alone: the graph as it grows, the
// stages of the plan, and what is known of each device.

#include <array>
#include <utility>
#include <vector>

#include "planner/lower.h"
#include "planner/stage_work.h"

namespace frazil {

// The tasks and works of one stage.
struct StageTasks {
  std::array<std::array<WorkId, 2>, kActionKinds> work{};  // by kind and SizeIndex
  TaskId update = kNoTask;                                 // the last
};

struct LoweredDevice {
  std::array<LaneId, 5> lanes{kNoLane, kNoLane, kNoLane, kNoLane, kNoLane};  // by Lane
  bool sends_at_once = false;  // none of its links has a bandwidth: a SEND is its hop alone
  TaskId overhead = kNoTask;
  TaskId first_compute = kNoTask;
  TaskId last_work = kNoTask;  // the last F, I, W, B, R or pair of its list
  bool has_barrier = false;
  bool has_reduction = false;
  TaskId last_collective = kNoTask;
  std::vector<std::pair<DeviceId, WorkId>> hops;       // by receiver; few, so found by looking
  std::vector<std::pair<Transfer, WorkId>> transfers;  // likewise
};

struct LoweringState {
  const Plan& plan;
  const ModelProfile& profile;
  const Activity& activity;
  std::vector<PipelineTable> table;
  LoweredStep step;
  std::vector<std::vector<StageTasks>> tasks;  // by pipeline and stage
  std::vector<LoweredDevice> devices;

  LaneId lane(DeviceId device, Lane kind);
  TaskId add_task(DeviceId device, Lane kind, WorkId work, const Action& action);
  // Waits for an earlier task of the same lane are implied by the lane.
  void wait(TaskId task, TaskId on, WorkId delay = kNoWork);
};

Action make_barrier_action();

// The collectives that the REDUCE_GRADs of the lists stand for, and the barrier before updates.
// `listed`: the tasks made from lists are those before it.
void add_collectives(LoweringState& state);
void add_barrier(LoweringState& state, TaskId listed);

}  // namespace frazil
