#pragma once
// Lists the plans that a training may hold throughout, with what each takes at least. The space has
// every shape of the search (planner/bounds/shape.h): any number of pipelines of any one length,
// with every micro-batch size and schedule of search_options(), recomputing or not. A shape is cut
// as the search cuts it (planner/search/propose.h) under each mask of the training, with the frozen
// prefix in its first stage and without. Not in the space are pipelines of unequal length, stages
// on several devices, and chunks and depths that are not the schedule's own. A step is bounded as
// in planner/bounds/group_bound.h, with the layers left out that the plan may cache under the mask.
// Copying features is left out.

#include <cstdint>
#include <vector>

#include "planner/reproduce/own_plans/own_training.h"

namespace frazil {

struct BoundedPlan {
  Plan plan;                    // with all blocks active and nothing cached
  std::vector<Duration> least;  // that a step takes, by segment
  Duration total{0};            // of all steps, at least
};

struct FixedSpace {
  std::vector<BoundedPlan> plans;  // those that may take less than was asked, least total first
  std::int64_t listed = 0;         // all plans of the space
};

// Lists the space for these segments. Requires: some segment.
FixedSpace list_fixed_plans(const OwnTraining& training,
                            const std::vector<ForecastSegment>& segments, Duration below);

}  // namespace frazil
