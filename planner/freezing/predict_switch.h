#pragma once
// The planner's answer to an amortisation gate: what a run gains and pays that takes the best plan
// under the new mask. Steps are simulated, the switch is predicted as in planner/trajectory.

#include "planner/freezing/decorators.h"
#include "planner/search.h"
#include "planner/trajectory/transition_cost.h"

namespace frazil {

// `held`: the plan that executes, with its mask. `search`: of the run; its mask is not read.
// Throws InfeasibleError where no plan fits under `to`.
PredictedSwitch predict_switch(const Plan& held, const FreezeMask& to, const ModelProfile& profile,
                               const Cluster& cluster, SearchOptions search,
                               const TransitionOverhead& overhead = {});

}  // namespace frazil
