#pragma once
// One simulated step as a picture: its time line and below it, on the same time axis, what each
// device holds (gantt_memory.h). Devices are called by their names.

#include <string>
#include <vector>

#include "planner/prediction/simulate_plan.h"
#include "profiles/cluster.h"
#include "profiles/model_profile.h"

namespace frazil {

struct GanttInput {
  std::string title;
  const SimulatedStep* step = nullptr;
  const ModelProfile* profile = nullptr;
  const Cluster* cluster = nullptr;
  // A what-if has no bytes; chunks of micro-batches are counted instead.
  bool counts_chunks = false;
};

// Self-contained. The memory curves are left out where nothing changes over time and all fits.
std::string gantt_svg(const GanttInput& input);
// The same on a page, with who does not fit, where each device's time goes and the critical path.
std::string gantt_html(const GanttInput& input);

}  // namespace frazil
