#pragma once
// Finds the times of a pipeline's stages, for the generators that decide by cost.

#include "planner/orders/device_order.h"
#include "planner/plan/plan.h"
#include "profiles/setting.h"

namespace frazil {

// Sets problem.times (one whole micro-batch on the stage's device; parts that the freeze mask makes
// needless are 0) and problem.hop, the longest time of a message between neighbouring stages.
// Requires: each stage lies on one device.
void find_stage_times(const Plan& plan, PipelineId pipeline, Setting setting,
                      OrderProblem& problem);

}  // namespace frazil
