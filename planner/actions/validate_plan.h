#pragma once
// The check that every plan passes before it is simulated or executed.

#include <string>

#include "planner/plan/plan.h"
#include "profiles/json_lines.h"
#include "profiles/setting.h"

namespace frazil {

// Checks a plan by itself and against the model and the cluster: hash of another model, layers
// missing, doubled or not convex, unknown devices, micro-batches that are not owned exactly once or
// do not add up to the batch, mask length, ... Throws InputError{file, the line of the fault} with
// the JSON path in `found`; faults of a schedule's actions name action and device instead.
void validate(const Plan& plan, Setting setting, const std::string& file,
              const LineOf& line_of = {});

}  // namespace frazil
