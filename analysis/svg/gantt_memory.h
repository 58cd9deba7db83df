#pragma once
// What each device of a simulated step holds over time, as charts. Bytes: with each device's limit
// where it is at most twice the largest peak, and in words who does not fit. Chunks of a what-if:
// +1 at the start of F, -1 at the end of B or W; a stage that recomputes counts from R on, and from
// F to R its input in a chart of its own.

#include <string>
#include <vector>

#include "analysis/svg/gantt.h"
#include "analysis/svg/svg.h"

namespace frazil {

// None where nothing changes over time and everything fits.
std::vector<Chart> make_memory_charts(const GanttInput& input);

// "device0 does not fit: 8.07 MiB of 8.00 MiB".
std::vector<std::string> list_misfits(const GanttInput& input);

}  // namespace frazil
