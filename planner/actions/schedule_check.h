#pragma once
// The check of any compute schedule, made or given: complete, in order on each device.

#include <string>

#include "planner/actions/schedule.h"
#include "planner/plan/activity.h"
#include "planner/plan/plan.h"
#include "profiles/json_lines.h"

namespace frazil {

// Every action belongs to the device, each owned micro-batch has its F once, its backward once
// after it (B, or I then W), on device_of(pipeline, stage, micro-batch), or in a stage with slices
// each of them on its device; nothing twice, no action of unknown stages, an R only where the stage
// recomputes, before the backward; U only where weights have versions. Throws InputError{file, the
// line of the device's actions in a plan file}.
void validate_schedule(const Schedule& compute, const Plan& plan, const Activity& activity,
                       const std::string& file, const LineOf& line_of = {});

}  // namespace frazil
