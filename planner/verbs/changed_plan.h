#pragma once
// A plan file's plan with what the command line of simulate says instead: --micro-batches,
// --schedule, --in-flight.

#include <string>

#include "planner/plan/plan.h"
#include "planner/prediction/simulate_plan.h"
#include "planner/verbs/flags.h"
#include "profiles/cluster.h"
#include "profiles/model_profile.h"

namespace frazil {

struct ChangedPlan {
  Plan plan;
  std::string searched;  // where its order was searched: a line that says what came of it
};

// With --schedule search the order is searched within the memory of the plan's own schedule, where
// that is one which splits backwards (zb-h1, zb-h2, zb-1p, zb-2p), else of zb-1p. The search knows
// F, I, W and messages alone (planner/order_search/searched_plan.h): for the least makespan its
// order is taken where the whole `step` is no longer with it and fits, else that schedule's own.
// Throws InputError where flags do not belong together, InfeasibleError where a schedule does not
// take the plan.
ChangedPlan change_plan(const Flags& values, Plan plan, const ModelProfile& profile,
                        const Cluster& cluster, const StepOptions& step);

}  // namespace frazil
