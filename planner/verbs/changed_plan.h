#pragma once
// Applies to the plan of a plan file what the command line of simulate says instead:
// --micro-batches, --schedule, --in-flight.

#include <string>

#include "planner/plan/plan.h"
#include "planner/prediction/simulate_plan.h"
#include "planner/verbs/flags.h"
#include "profiles/setting.h"

namespace frazil {

struct ChangedPlan {
  Plan plan;
  std::string searched;  // a line that says what the search for its order found, or ""
};

// Returns the plan with these flags applied. If --schedule is search, the order is searched within
// the memory of the plan's own schedule if that splits backwards (zb-h1, zb-h2, zb-1p, zb-2p), else
// within that of zb-1p. The search knows F, I, W and messages alone
// (planner/order_search/searched_plan.h). For the objective makespan its order is taken if the
// whole `step` takes no longer with it and fits, or if neither order fits; else the order of that
// schedule stays. Throws InputError if flags do not belong together, InfeasibleError if a schedule
// does not take the plan.
ChangedPlan change_plan(const Flags& values, Plan plan, Setting setting, const StepOptions& step);

}  // namespace frazil
