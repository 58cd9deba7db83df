#pragma once
// Charts what each device of a simulated step holds over time. Bytes: each device's limit
// (capacity) is drawn if it is at most twice the largest peak, and words say which device does not
// fit. Chunks of a what-if: +1 at the start of F, -1 at the end of B or W; a stage that recomputes
// (activation checkpointing) counts from R on, and its input from F to R in a chart of its own.

#include <string>
#include <vector>

#include "analysis/svg/gantt.h"
#include "analysis/svg/svg.h"

namespace frazil {

// Returns the charts; bytes have none if nothing changes over time and everything fits.
std::vector<Chart> make_memory_charts(const GanttInput& input);

// Returns a line for each device that does not fit: "device0 does not fit: 8.07 MiB of 8.00 MiB".
std::vector<std::string> list_misfits(const GanttInput& input);

}  // namespace frazil
