#pragma once
// Answers an amortisation gate: predicts what a run that goes from one plan to the next gains and
// pays. Steps are simulated, and the transition is predicted as in transition_cost.h.

#include "planner/freezing/decorators.h"
#include "planner/prediction/simulate_plan.h"
#include "planner/transitions/transition_cost.h"
#include "profiles/setting.h"

namespace frazil {

// Predicts the transition from `held`, the plan that executes, to `next`, each with its own mask.
// The saving is that of one step of `held`: if `next` has another batch, its step counts for as
// many samples.
PredictedTransition predict_transition(const Plan& held, const Plan& next, Setting setting,
                                       const StepOptions& options = {},
                                       const TransitionOverhead& overhead = {});

// Returns how much longer a step takes while it fills the cache of `next` than `next` itself says,
// writing left out: the part of the frozen prefix that `held` has not cached runs, too. Its share
// of the time is its share of the frozen F of all layers that `next` caches. Zero if `next` caches
// nothing, or if `held` caches as much.
Duration predict_fill(const Plan& held, const Plan& next, Setting setting,
                      const StepOptions& options = {});

}  // namespace frazil
