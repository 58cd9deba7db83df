#pragma once
// Chooses the plan to go on with when the mask has changed: of the held plan and all plans of a
// search, the one whose steps to come and the transition to it (transition_cost.h) together take
// the least time. The choice is exact, as the search is: a plan is left out only if its steps alone
// take longer than the answer, or, with `gap_ppm`, if they alone undercut the answer by no more
// than that gap.

#include <optional>

#include "planner/search/search.h"
#include "planner/transitions/transition_cost.h"
#include "profiles/setting.h"

namespace frazil {

struct HeldState {
  Plan plan;
  std::int64_t steps = 1;  // to come
  FreezeMask trained;  // up to the transition: a frozen layer has no optimizer state left to move
  TransitionOverhead overhead = {};
};

struct Replan {
  Candidate next;
  TransitionCost cost;
  bool stays = false;                              // `next` is the held plan
  std::optional<NotLookedAt> left = std::nullopt;  // what a search that ended early left out
};

// Searches with `options`, whose mask is the one to come and whose held plan is not read. Returns
// none if no plan fits. Requires: the options keep a plan.
std::optional<Replan> replan(PlanSearch& search, Setting setting, const HeldState& held,
                             SearchOptions options);

}  // namespace frazil
