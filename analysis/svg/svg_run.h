#pragma once
// Draws a whole run as one picture: the freeze staircase, and below it, for its first and its last
// phase, one predicted step above one measured step.

#include <string>

#include "analysis/report_run.h"

namespace frazil {

// Draws the first and the last of those phases whose time lines the run has kept; a single phase is
// drawn once.
std::string draw_run(const ReportRun& run, int width = 960);

}  // namespace frazil
