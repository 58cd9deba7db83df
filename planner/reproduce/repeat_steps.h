#pragma once
// Training as one graph: a step's tasks again and again on the same lanes. Nothing else ties a step
// to the one before it, so a device begins the next as soon as its own update is done (decoupled
// update), unless the step has a barrier in it. Memory is left out.

#include "planner/lowering/lower.h"
#include "planner/plan/plan.h"
#include "sim/jitter.h"
#include "sim/task_graph.h"

namespace frazil {

// Requires: steps >= 1.
TaskGraph repeat_steps(const TaskGraph& step, int steps);

struct RepeatOptions {
  int steps = 100;
  bool barrier = false;  // before the updates of each step
};

// Time of a step once the pipeline is full: that of the second half of twice the steps, by their
// number, rounded down.
Duration find_period(const Plan& plan, const ModelProfile& profile, const Cluster& cluster,
                     const RepeatOptions& options);
// Time of all steps by their number, rounded down, where every task varies: the median of the
// draws.
Duration find_period_with_jitter(const Plan& plan, const ModelProfile& profile,
                                 const Cluster& cluster, const RepeatOptions& options,
                                 const Jitter& jitter);

}  // namespace frazil
