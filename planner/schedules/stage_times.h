#pragma once
// Finds the times of a pipeline's stages, for the generators that decide by cost.

#include "planner/orders/device_order.h"
#include "planner/plan/plan.h"
#include "profiles/setting.h"

namespace frazil {

// Sets problem.times: F, I and W of one whole micro-batch on the stage's device. A part that the
// freeze mask or the cache makes needless is 0; a recompute (R) is in none of them. Sets
// problem.hop, the longest time (transfer and latency) of an activation or a gradient between any
// two stages joined by an edge. Requires: each stage lies on one device.
void find_stage_times(const Plan& plan, PipelineId pipeline, Setting setting,
                      OrderProblem& problem);

}  // namespace frazil
