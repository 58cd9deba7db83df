#pragma once
// Prints the plan of a named planner beside Frazil's own best plan, both as the simulator judged
// them.

#include <optional>
#include <string>
#include <string_view>

#include "planner/named/named_planner.h"
#include "planner/prediction/ranking.h"
#include "profiles/model_profile.h"

namespace frazil {

struct PlannerComparison {
  NamedPlanner planner;
  const JudgedPlan& judged;
  const Candidate* own = nullptr;  // null: nothing that Frazil searches is feasible
  const ModelProfile& profile;
};

// Returns the makespan of the named plan divided by that of Frazil's own; none if one of the two is
// infeasible or takes no time.
std::optional<double> makespan_ratio(const PlannerComparison& comparison);

std::string print_comparison(const PlannerComparison& comparison);
std::string comparison_json(const PlannerComparison& comparison);

}  // namespace frazil
