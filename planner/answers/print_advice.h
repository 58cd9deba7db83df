#pragma once
// Prints feasibility advice (what would make a plan fit), for people (lines) and for programs (one
// JSON object).

#include <string>
#include <vector>

#include "planner/search/advice.h"

namespace frazil {

// Returns a line for each piece of advice.
std::string print_advice(const std::vector<Advice>& all_advice, const Cluster& cluster);
// Returns {"relief": [{"change", "amount", "text"}, ..]}.
std::string advice_json(const std::vector<Advice>& all_advice, const Cluster& cluster);

}  // namespace frazil
