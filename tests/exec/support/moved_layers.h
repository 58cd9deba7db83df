#pragma once
// Moves the layers of devices as a run does between two steps, on threads and over communicators of
// this process.

#include <vector>

#include "exec/run/move_layers.h"
#include "planner/plan/plan.h"

namespace frazil {

// Afterwards `states[d]` holds exactly the layers that `plan` gives device d. All layers train.
MoveReport move_layers(std::vector<DeviceState>& states, const Plan& plan, int layers);

}  // namespace frazil
