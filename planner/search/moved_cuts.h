#pragma once
// Moves the cuts of a search's plans. A search gives each shape the cuts with the least bottleneck,
// as if messages stopped the work or ran beside it (planner/search/propose.h). Where devices wait
// for each other, other cuts of the same shape may be faster.

#include <cstddef>
#include <cstdint>
#include <limits>

#include "planner/search/search.h"
#include "profiles/setting.h"

namespace frazil {

struct MovedCuts {
  int faster = 0;          // plans
  std::int64_t tried = 0;  // cuts, each simulated
};

// How many of the best plans get their cuts moved where someone waits for the answer.
inline constexpr int kMovedPlans = 32;

struct MovedCutsLimits {
  std::size_t plans = std::numeric_limits<std::size_t>::max();  // the best so many
  // The moving ends early once the plans simulated had so many F, I and W together.
  std::int64_t actions = 4'000'000;
};

// Moves the boundaries of the plans that fit, best first, by one layer at a time, as long as that
// makes the plan faster and the plan fits; pipelines that are cut alike stay alike. Then all plans
// are ranked again, and of plans that have become equal one is left. Only the clipping and the
// overlap of reductions are read from `options`.
MovedCuts move_cuts(Ranking& ranking, Setting setting, const SearchOptions& options,
                    const MovedCutsLimits& limits = {});

}  // namespace frazil
