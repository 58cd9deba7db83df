#pragma once
// Which version of its weights each stage's F reads, where updates come among the backwards.
// Version v of a step is what v updates have made; the backward of a micro-batch uses the version
// its F read.
//   stash (PipeDream, Narayanan et al. 2019)      the newest there is. In steady state a stage
//         s of p reads p-1-s updates behind its own
//   2bw   (PipeDream-2BW, Narayanan et al. 2021)  micro-batches between two updates are a group;
//         group g reads version max(g - 1, 0) at every stage: one update behind, everywhere

#include <vector>

#include "planner/actions/schedule.h"
#include "planner/plan/plan.h"

namespace frazil {

// Of the one pipeline of a plan with weight versions.
struct StageVersions {
  std::vector<int> read;      // by micro-batch: the version that its F reads
  std::vector<int> group_of;  // by micro-batch: the update, from 0, that its gradient goes into
};

// By stage; empty for WeightVersions::kSync. Throws InfeasibleError where a stage would read a
// version that is not there yet, or no more: with 2bw two are kept.
std::vector<StageVersions> find_versions(const Plan& plan, const Schedule& schedule);

// What a stage did: `lag` = updates made between the read and the micro-batch's own update.
struct WeightRead {
  StageId stage;
  MicroBatchId micro_batch;
  int version = 0;
  int lag = 0;
  friend bool operator==(const WeightRead&, const WeightRead&) = default;
};

}  // namespace frazil
