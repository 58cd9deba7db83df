#pragma once
// Checks that a compute schedule, generated or given in a plan file, is complete and in order.

#include <string>

#include "planner/actions/schedule.h"
#include "planner/plan/activity.h"
#include "planner/plan/plan.h"
#include "profiles/json_lines.h"

namespace frazil {

// Throws InputError{file, the line of the device's actions in a plan file} unless
//   - each owned micro-batch has in each stage one F and, where `activity` asks for it, one
//   backward
//     (B, or I then W) after the F, on device_of(pipeline, stage, micro-batch); in a stage with
//     slices each slice has them, on its own device;
//   - a stage that recomputes has an R before each backward, and no stage else has an R;
//   - a U stands only where weights have versions;
//   - nothing stands twice, on a wrong device, or for a stage that the plan does not have.
void validate_schedule(const Schedule& compute, const Plan& plan, const Activity& activity,
                       const std::string& file, const LineOf& line_of = {});

}  // namespace frazil
