#pragma once
// Finds the plans among which a trajectory, or the rule without a forecast, chooses: the best ones
// of a search under a mask.

#include <vector>

#include "planner/search/search.h"
#include "profiles/setting.h"

namespace frazil {

struct CandidateQuestion {
  SearchOptions search;    // with the mask
  int plans_per_mask = 3;  // at least so many are kept
  bool may_cache = false;  // plans that cache the mask's frozen prefix are looked for as well
};

// Returns the plan as candidates are: with all blocks active, and nothing cached.
Plan as_candidate(Plan plan);

// Adds the best plans that are not there yet. Throws InfeasibleError if none fits under the mask.
// Requires: plans_per_mask is at least 1.
void add_candidates(PlanSearch& search, Setting setting, const CandidateQuestion& question,
                    std::vector<Plan>& candidates);

}  // namespace frazil
