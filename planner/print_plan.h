#pragma once
// Answers of the verbs plan and simulate, for people (tables) and for programs (one JSON object).

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "planner/bounds.h"
#include "planner/plan.h"
#include "planner/search.h"
#include "planner/simulate_plan.h"
#include "planner/what_if.h"

namespace frazil {

// A plan and what the simulator says of it.
struct SimulatedPlan {
  const Plan& plan;
  const ModelProfile& profile;
  const Cluster& cluster;
  const PlanSimulation& simulation;
  const PlanBounds& bounds;
  std::optional<ReductionOverlap> overlap = std::nullopt;  // as it was simulated
};

// "parameters 1.50 MiB, stash 3.00 MiB": what a device holds at its peak.
std::string list_held(const MemoryPeak& peak);

// "1 plan", "2 plans".
std::string count_of(std::int64_t number, std::string_view noun);

// Notes, a line each, on what the numbers rest on that was not measured.
std::string list_flags(const ModelProfile& profile, bool extrapolated);
// A note where the cluster gives links no bandwidth, so that what they carry takes no time; of one
// device none.
std::string list_free_links(const Cluster& cluster);

std::string print_what_if(const WhatIf& what_if, const WhatIfAnswer& answer);
std::string what_if_json(const WhatIf& what_if, const WhatIfAnswer& answer);

// With a picture of the time line when it is small: at most 16 devices and 100 columns.
std::string print_simulation(const SimulatedPlan& simulated);
std::string simulation_json(const SimulatedPlan& simulated);

}  // namespace frazil
