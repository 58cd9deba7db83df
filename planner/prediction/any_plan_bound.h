#pragma once
// What no plan of a step can beat on the devices that a plan uses. The bounds of
// planner/prediction/bounds.h hold for the stages as they lie; a plan with other cuts, another
// placement or another schedule may take less than those, but not less than this.

#include "planner/plan/plan.h"
#include "planner/prediction/bounds.h"
#include "profiles/setting.h"

namespace frazil {

// Returns a bound on the makespan of every plan with the batch, the micro-batch size, the mask and
// the cached layers of this one, on as many devices of the cluster, whose stages run whole
// micro-batches. It is the larger one of
//   total-work       n (F + I + W of all layers) / the speed of the fastest so many devices
//                    together, for n whole micro-batches
//   one-micro-batch  the longest path of F along edges and of I back along those that carry a
//                    gradient, on the fastest device; an F that saves nothing (frozen, or to be run
//                    again) where that takes less
// each without overheads, messages, reductions and updates. A short last micro-batch is left out.
// Throws as price() (sim/cost_model.h) does.
LowerBound bound_any_plan(const Plan& plan, Setting setting);

}  // namespace frazil
