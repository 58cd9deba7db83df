#pragma once
// Prints the answers of the subcommands plan and simulate, for people (tables) and for programs
// (one JSON object).

#include <optional>
#include <string>

#include "planner/plan/plan.h"
#include "planner/prediction/bounds.h"
#include "planner/prediction/simulate_plan.h"
#include "planner/what_if/what_if.h"
#include "profiles/setting.h"

namespace frazil {

// A plan with what the simulator says about it. All that it refers to must outlive it, the profile
// and the cluster too.
struct SimulatedPlan {
  const Plan& plan;
  Setting setting;
  const PlanSimulation& simulation;
  const PlanBounds& bounds;
  const LowerBound& any_plan;                              // planner/prediction/any_plan_bound.h
  std::optional<ReductionOverlap> overlap = std::nullopt;  // as it was simulated
};

std::string print_what_if(const WhatIf& what_if, const WhatIfAnswer& answer);
std::string what_if_json(const WhatIf& what_if, const WhatIfAnswer& answer);

// Returns tables, and a picture of the time line if it is small: at most 16 devices and 100
// columns.
std::string print_simulation(const SimulatedPlan& simulated);
std::string simulation_json(const SimulatedPlan& simulated);

}  // namespace frazil
