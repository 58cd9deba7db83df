#pragma once
// find_versions() tells which version of its weights each stage's F reads in a plan whose updates
// come among the backwards. Version v of a step is what v updates have made; the backward of a
// micro-batch uses the version that its F read.
// clang-format off
//   stash (PipeDream, Narayanan et al. 2019)      the newest there is. In steady state a stage s
//                                                 of p reads p-1-s updates behind its own
//   2bw   (PipeDream-2BW, Narayanan et al. 2021)  micro-batches between updates g and g + 1 read
//                                                 version max(g - 1, 0) at every stage: one
//                                                 update behind, everywhere
// clang-format on

#include <vector>

#include "planner/actions/schedule.h"
#include "planner/plan/plan.h"

namespace frazil {

// The versions of one stage. A plan with weight versions has one pipeline.
struct StageVersions {
  std::vector<int> read;      // by micro-batch: the version that its F reads
  std::vector<int> group_of;  // by micro-batch: the update, from 0, that its gradient goes into
};

// Returns the versions by stage; empty for WeightVersions::kSync. Throws InfeasibleError if a stage
// would read a version that is not there yet or is gone: two are kept with 2bw. Requires: the plan
// has one pipeline unless kSync.
std::vector<StageVersions> find_versions(const Plan& plan, const Schedule& schedule);

// A read that a stage has made. `lag`: the updates made between the read and the micro-batch's own
// update. In a window of steps (planner/plan/step_window.h) `version` counts the updates since the
// window began, and `lag` is what they lack to the steps that the device has done in it: 0, or the
// device has gone ahead of its own updates.
struct WeightRead {
  StageId stage;
  MicroBatchId micro_batch;
  int version = 0;
  int lag = 0;
  friend bool operator==(const WeightRead&, const WeightRead&) = default;
};

}  // namespace frazil
