#pragma once
// Prints whether to go on with a held plan or to make a transition to another, for people and for
// programs (one JSON object).

#include <string>

#include "planner/transitions/replan.h"

namespace frazil {

struct ReplanCase {
  const HeldState& held;
  Candidate going_on;  // the held plan, under the mask to come
  Replan answer;
};

// Returns the steps until the transition has saved what it costs; none if the held plan does not
// fit or stays, or if a step of the next plan saves nothing.
std::optional<std::int64_t> find_break_even(const ReplanCase& asked);

std::string print_replan(const ReplanCase& asked);
std::string replan_json(const ReplanCase& asked);

}  // namespace frazil
