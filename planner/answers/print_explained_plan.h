#pragma once
// Prints an explained search, for people (lines) and for programs (one JSON object).

#include <string>

#include "planner/search/explain_plan.h"

namespace frazil {

std::string print_plan_explanation(const PlanExplanation& explanation, const Cluster& cluster);
// Returns {"explanation": {"best": [..], "rejected": [..], ..}}.
std::string plan_explanation_json(const PlanExplanation& explanation, const Cluster& cluster);

}  // namespace frazil
