#pragma once
// The cuts of a search's plans, moved. A search gives each shape the cuts with the least busiest
// stage, as if no message overlapped work (planner/search/propose.h). Where messages do, or devices
// wait for each other, other cuts of the same shape may be faster.

#include <cstdint>

#include "planner/search.h"

namespace frazil {

struct MovedCuts {
  int faster = 0;          // plans
  std::int64_t tried = 0;  // cuts, each simulated
};

// Moves the boundaries of the plans that fit, best first, by one layer at a time, as long as that
// makes the plan faster and it fits; pipelines that are cut alike stay so. Ends early when the
// plans simulated had `most_actions` F, I and W together. Then all are ranked again, those that
// have become equal once. Of `options` the clipping and the overlap of reductions are read.
MovedCuts move_cuts(Ranking& ranking, const ModelProfile& profile, const Cluster& cluster,
                    const SearchOptions& options, std::int64_t most_actions = 4'000'000);

}  // namespace frazil
