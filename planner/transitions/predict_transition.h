#pragma once
// The planner's answer to an amortisation gate: what a run gains and pays that goes from one plan
// to the next. Steps are simulated, the switch is predicted as in planner/trajectory.

#include "planner/freezing/decorators.h"
#include "planner/prediction/simulate_plan.h"
#include "planner/transitions/transition_cost.h"

namespace frazil {

// `held`: the plan that executes, `next`: the one that would; each with its mask. What is saved is
// of a step of held: of another batch that next has, its step counts for as many samples.
PredictedTransition predict_transition(const Plan& held, const Plan& next,
                                       const ModelProfile& profile, const Cluster& cluster,
                                       const StepOptions& options = {},
                                       const TransitionOverhead& overhead = {});

// How much longer than `next` says a step takes that fills the cache `next` has, writing left out:
// the frozen prefix runs too, of what `held` has cached from its boundary on, whose share is that
// of the layers' frozen F. Zero where `next` caches nothing, or `held` as much.
Duration predict_fill(const Plan& held, const Plan& next, const ModelProfile& profile,
                      const Cluster& cluster, const StepOptions& options = {});

}  // namespace frazil
