#pragma once
// One simulated step as a picture: its time line and below it what each device holds over time.

#include <string>
#include <vector>

#include "planner/simulate_plan.h"
#include "profiles/cluster.h"
#include "profiles/model_profile.h"

namespace frazil {

struct GanttInput {
  std::string title;
  const SimulatedStep* step = nullptr;
  const ModelProfile* profile = nullptr;
  const Cluster* cluster = nullptr;
  // A what-if has no bytes: each chunk of a micro-batch stashes one, and so they are counted.
  bool counts_chunks = false;
};

// Self-contained. The memory curves are left out where nothing changes over time.
std::string gantt_svg(const GanttInput& input);
// The same on a page, with where each device's time goes and the critical path.
std::string gantt_html(const GanttInput& input);

}  // namespace frazil
