#pragma once
// Finds the time of a step of a training that repeats it over and over on full pipelines
// (planner/lowering/step_copies.h): the period. Memory is left out.

#include "planner/lowering/step_copies.h"
#include "planner/plan/plan.h"
#include "profiles/setting.h"
#include "sim/jitter.h"

namespace frazil {

struct RepeatOptions {
  int steps = 100;
  bool barrier = false;  // before the updates of each step
};

// Returns the time of a step once the pipeline is full: (makespan of 2 x steps - makespan of steps)
// / steps, rounded down.
Duration find_period(const Plan& plan, Setting setting, const RepeatOptions& options);
// Returns the time of all steps / steps, rounded down, where the time of every task varies: the
// median over the draws of `jitter`.
Duration find_period_with_jitter(const Plan& plan, Setting setting, const RepeatOptions& options,
                                 const Jitter& jitter);

}  // namespace frazil
