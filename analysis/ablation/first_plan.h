#pragma once
// Finds the plan that an arm begins with, while all blocks train.

#include <optional>
#include <string>

#include "analysis/ablation/arm.h"
#include "planner/bounds/search_options.h"
#include "planner/plan/plan.h"
#include "profiles/setting.h"

namespace frazil {

struct FirstPlan {
  std::optional<Plan> plan;
  std::string reason = {};  // why there is none, in one sentence
};

// Returns the plan, or why none fits: that is an answer of an ablation and no error.
FirstPlan find_first_plan(ArmFacts::First first, Setting setting, const SearchOptions& question);

}  // namespace frazil
