#pragma once
// The cuts of a search's plans, moved. A search gives each shape the cuts with the least busiest
// stage, as if messages stopped the work or ran beside it (planner/search/propose.h). Where devices
// wait for each other, other cuts of the same shape may be faster.

#include <cstddef>
#include <cstdint>
#include <limits>

#include "planner/search/search.h"

namespace frazil {

struct MovedCuts {
  int faster = 0;          // plans
  std::int64_t tried = 0;  // cuts, each simulated
};

// Of so many of the best plans cuts are moved where someone waits for the answer.
inline constexpr int kMovedPlans = 32;

struct MovedCutsLimits {
  std::size_t plans = std::numeric_limits<std::size_t>::max();  // the best so many
  // Ends early when the plans simulated had so many F, I and W together.
  std::int64_t actions = 4'000'000;
};

// Moves the boundaries of the plans that fit, best first, by one layer at a time, as long as that
// makes the plan faster and it fits; pipelines that are cut alike stay so. Then all are ranked
// again, those that have become equal once. Of `options` the clipping and the overlap of reductions
// are read.
MovedCuts move_cuts(Ranking& ranking, const ModelProfile& profile, const Cluster& cluster,
                    const SearchOptions& options, const MovedCutsLimits& limits = {});

}  // namespace frazil
