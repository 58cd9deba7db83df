#pragma once
// What runs cost and reached as a whole, for the report page. Requires: at least one run.

#include <string>
#include <vector>

#include "analysis/run_summary.h"

namespace frazil {

// Of the first run, with the other runs' values as remarks.
std::string draw_tiles(const std::vector<RunSummary>& runs);
// A row for each run; speeds are told against the last one.
std::string draw_totals(const std::vector<RunSummary>& runs);

}  // namespace frazil
