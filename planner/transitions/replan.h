#pragma once
// Which plan to go on with when the mask has changed: of the held one and all plans of a search
// the one whose steps to come take least together with the transition to it (transition_cost.h).
// Exact, as the search is: a plan is left out only where the steps alone take longer; with
// `gap_ppm` where they alone take no less than the answer by more than that.

#include <optional>

#include "planner/search/search.h"
#include "planner/transitions/transition_cost.h"

namespace frazil {

struct HeldState {
  Plan plan;
  std::int64_t steps = 1;  // to come
  FreezeMask trained;      // until now: a frozen layer has no optimizer state left to move
  TransitionOverhead overhead = {};
};

struct Replan {
  Candidate next;
  TransitionCost cost;
  bool stays = false;                              // with the held plan
  std::optional<NotLookedAt> left = std::nullopt;  // by a search that ended early
};

// `options`: with the mask to come; how many plans are kept is not read. With `moved_plans` the
// cuts of so many of the best are moved as well (search/moved_cuts.h). None where nothing fits.
std::optional<Replan> replan(PlanSearch& search, const ModelProfile& profile,
                             const Cluster& cluster, const HeldState& held, SearchOptions options,
                             int moved_plans = 0);

}  // namespace frazil
