#pragma once
// What no plan can beat under the masks of a training: the work that is left under each mask,
// shared by all devices of the cluster without a wait.

#include <cstdint>
#include <optional>
#include <string>
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

// The limit of an ablation, beside the predicted time of arm `unfrozen` where that fits.
struct ComputeLimit {
  Duration time{0};
  std::optional<Duration> unfrozen = std::nullopt;
  std::int64_t devices = 1;
  bool caches = false;

  // Returns how many times as fast as `unfrozen` the limit is.
  std::optional<double> speed() const;
};
// Returns a sentence: "limit by compute: 17.390 s, 1.6748 x unfrozen; no plan takes less under ..".
std::string tell_limit(const ComputeLimit& limit);

}  // namespace frazil
