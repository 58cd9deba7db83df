#pragma once
// Counts the plans of a ranking by what became of them, those that a search left out with those
// that it lists.

#include <cstdint>

#include "planner/prediction/ranking.h"

namespace frazil {

struct RankingCounts {
  std::int64_t fit = 0;
  std::int64_t too_large = 0;  // for the memory of some device
  std::int64_t not_made = 0;   // an interpreter refuses them, whatever the memory
  std::int64_t bounded = 0;    // not tried, because their lower bounds are too high
};

// Counts the candidates, and those of the shapes that the search has rejected.
RankingCounts count_candidates(const Ranking& ranking);

}  // namespace frazil
