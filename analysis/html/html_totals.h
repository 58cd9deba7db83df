#pragma once
// Draws what runs cost and reached as a whole, for the report page. Requires: at least one run.

#include <string>
#include <vector>

#include "analysis/run_summary.h"

namespace frazil {

// Draws tiles of the first run, with the values of the other runs as remarks.
std::string draw_tiles(const std::vector<RunSummary>& runs);
// Draws a row for each run; speeds are relative to the last run.
std::string draw_totals(const std::vector<RunSummary>& runs);

}  // namespace frazil
