#pragma once
// Draws one simulated step: its time line and below it, on the same time axis, what each device
// holds (gantt_memory.h). Devices are called by their names.

#include <string>
#include <vector>

#include "planner/prediction/simulate_plan.h"
#include "profiles/setting.h"

namespace frazil {

// The step, the profile and the cluster must outlive the input.
struct GanttInput {
  std::string title;
  const SimulatedStep* step = nullptr;
  Setting setting;
  // True for a what-if, which has no bytes: chunks of micro-batches are counted instead.
  bool counts_chunks = false;
};

// Returns a self-contained picture. The memory curves are left out if nothing changes over time and
// everything fits.
std::string gantt_svg(const GanttInput& input);
// Returns the picture on a page that also says what does not fit, where each device's time goes,
// and the critical path.
std::string gantt_html(const GanttInput& input);

}  // namespace frazil
