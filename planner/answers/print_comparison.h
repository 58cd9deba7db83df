#pragma once
// A named planner's plan beside Frazil's own best one, both as the simulator judged them.

#include <optional>
#include <string>
#include <string_view>

#include "planner/prediction/ranking.h"
#include "profiles/model_profile.h"

namespace frazil {

struct PlannerComparison {
  std::string_view planner;  // its name
  const Candidate& named;
  const Candidate* own = nullptr;  // none: nothing that Frazil searches is feasible
  const ModelProfile& profile;
};

// Makespan of the named plan by that of Frazil's own; none where one of them is infeasible or takes
// no time.
std::optional<double> makespan_ratio(const PlannerComparison& comparison);

std::string print_comparison(const PlannerComparison& comparison);
std::string comparison_json(const PlannerComparison& comparison);

}  // namespace frazil
