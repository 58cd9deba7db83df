#pragma once
// Simulates training as one task graph that repeats a step's tasks on the same lanes. Nothing but
// the lanes ties a step to the step before, so a device begins the next step as soon as its own
// update is done (decoupled update), unless the step contains a barrier. Memory is left out.

#include "planner/lowering/lower.h"
#include "planner/plan/plan.h"
#include "profiles/setting.h"
#include "sim/jitter.h"
#include "sim/task_graph.h"

namespace frazil {

// Returns a graph of `steps` copies of the step. Requires: steps >= 1.
TaskGraph repeat_steps(const TaskGraph& step, int steps);

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
