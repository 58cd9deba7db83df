#pragma once
// Repeats a step: one graph with the tasks of several steps, one after another, on the same lanes.
// Nothing but the lanes ties a step to the step before, so a device begins the next step as soon as
// its own update is done (decoupled update), unless the step contains a barrier. A device's
// step_overhead, a task of its host lane, begins when the device has computed all of the step
// before. Memory is held once, and changes in each step. Messages on their way count nowhere, so a
// device that is steps ahead of its receivers holds more than is told.

#include "planner/lowering/lower.h"
#include "sim/task_graph.h"

namespace frazil {

// Return `steps` copies of the step; those of its actions have the steps 0, 1, ... Requires: steps
// >= 1.
TaskGraph repeat_steps(const TaskGraph& step, int steps);
LoweredStep repeat_steps(const LoweredStep& step, int steps);

}  // namespace frazil
