#pragma once
// Prints this project's own plans of PipeTransformer's trainings as a table and as JSON.

#include <string>
#include <vector>

#include "planner/reproduce/own_plans/own_tables.h"

namespace frazil {

std::string print_own(const OwnComparison& comparison, const std::vector<OwnCase>& cases);
// Returns {"title", "compute_limit", "cache_of_host_bytes", "rows": [{"name", "plans", "time_ns",
// "over_gpipe", "over_unfrozen", "parts"}], "hosts": [{"memory_bytes", "disk_bytes" and the keys of
// a row}], "cases": [{"name", "device_memory_bytes", "micro_batch_sizes", "fitting_samples",
// "cache_of_host_bytes", "unfrozen", "fixed" and "elastic": {"plans", "time_ns", "parts",
// "of_plans"}}]}; "parts" are in ns, and "of_plans" counts the fixed plans that one was chosen
// from; both stand where they are known.
std::string own_json(const OwnComparison& comparison, const std::vector<OwnCase>& cases);

}  // namespace frazil
