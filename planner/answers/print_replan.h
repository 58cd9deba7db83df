#pragma once
// Whether to go on with a held plan or to switch, for people and for programs (one JSON object).

#include <string>

#include "planner/transitions/replan.h"

namespace frazil {

struct ReplanCase {
  const HeldState& held;
  Candidate going_on;  // the held plan, under the mask to come
  Replan answer;
};

// Steps until the switch has saved what it costs; none where the held plan does not fit, or stays.
std::optional<std::int64_t> find_break_even(const ReplanCase& asked);

std::string print_replan(const ReplanCase& asked);
std::string replan_json(const ReplanCase& asked);

}  // namespace frazil
