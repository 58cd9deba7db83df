#pragma once
// Reads and writes the plan file ("format": "frazil.plan", "version": 1). Layers stand as ranges
// [first, last], devices as indices, masks as text bits; the schedule is {"name": "1f1b"},
// {"actions": [["0F0", ...], ...]} or {"policy": "fifo"}.

#include <filesystem>
#include <string>
#include <string_view>

#include "planner/plan/plan.h"

namespace frazil {

// Parses a plan and checks its form alone (types, ranges, names, unknown keys); throws
// InputError{file, line} with the JSON path. validate() in planner/actions/validate_plan.h checks a
// plan against its model and cluster.
Plan parse_plan(std::string_view text, const std::string& file);
std::string to_json(const Plan& plan);  // equal plans give equal bytes; round trips

Plan read_plan(const std::filesystem::path& path);
void write_plan(const Plan& plan, const std::filesystem::path& path);

}  // namespace frazil
