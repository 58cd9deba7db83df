#pragma once
// Answers about what would make a plan fit, for people (lines) and for programs (one JSON object).

#include <string>
#include <vector>

#include "planner/search/relief.h"

namespace frazil {

// A line for each change.
std::string print_relief(const std::vector<Relief>& reliefs, const Cluster& cluster);
// {"relief": [{"change", "amount", "text"}, ..]}
std::string relief_json(const std::vector<Relief>& reliefs, const Cluster& cluster);

}  // namespace frazil
