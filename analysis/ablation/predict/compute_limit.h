#pragma once
// What no plan can beat under the masks of a training: the work that is left under each mask,
// shared by all devices of the cluster without a wait.

#include <vector>

#include "planner/bounds/search_options.h"
#include "planner/trajectory/plan_trajectory.h"
#include "profiles/setting.h"

namespace frazil {

// Returns a lower bound on the time of all steps of the segments under any plans: for each mask the
// least bound over the micro-batch sizes of the options, of bound_any_plan()
// (planner/prediction/any_plan_bound.h) on all devices. Messages, reductions, updates, overheads
// and transitions are left out. `caches`: the frozen prefix is taken to be cached from the first
// step of its mask on, at no cost; else it runs forward. Plans with other micro-batch sizes
// (PipeTransformer's) are not spoken of. Requires: a size to try.
Duration bound_training(Setting setting, const SearchOptions& options,
                        const std::vector<ForecastSegment>& segments, bool caches);

}  // namespace frazil
