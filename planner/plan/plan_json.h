#pragma once
// clang-format off
// Reads and writes the plan file. Devices, stages and layers are indices from 0, batch sizes are in
// samples; members with "?" may be left out and then have the default of struct Plan.
//   {"format": "frazil.plan", "version": 1, "model_hash": "..", "batch_size": 32,
//    "micro_batch_size": 8, "mask": "0001111", "cache_frozen_prefix"?: false,
//    "pipelines": [{"stages": [{"layers": [[0, 6]], "devices": [0], "axis"?: "data",
//                               "memory"?: "keep"}], "micro_batches": [[0, 3]]}],
//    "schedule": {"name": "1f1b", "in_flight"?: 2, "chunks"?: 1}, "reduction"?: "exact",
//    "weight_versions"?: "sync", "steps_ahead"?: 0, "provenance"?: {"..": ".."}}
// Ranges [first, last] include both ends. The schedule may also be {"actions": [["0F0", ..], ..]},
// a list per device, or {"policy": "fifo"}.
// clang-format on

#include <filesystem>
#include <string>
#include <string_view>

#include "planner/plan/plan.h"

namespace frazil {

// Parses a plan and checks its form alone (types, ranges, names, unknown keys). Throws InputError
// with file and line, and with the JSON path unless the fault lies inside a mask or an action.
// validate() in planner/actions/validate_plan.h checks a plan against its model and cluster.
Plan parse_plan(std::string_view text, const std::string& file);
// Returns the text of the plan file. Equal plans give equal bytes, and parse_plan gives back a plan
// that it could have read. Throws InputError for text that is not UTF-8. Requires: every action of
// step 0.
std::string to_json(const Plan& plan);

// Both throw InputError (line 0) if the file cannot be read or written; read_plan also throws as
// parse_plan does. write_plan replaces the file by rename and makes missing parent folders.
Plan read_plan(const std::filesystem::path& path);
void write_plan(const Plan& plan, const std::filesystem::path& path);

}  // namespace frazil
