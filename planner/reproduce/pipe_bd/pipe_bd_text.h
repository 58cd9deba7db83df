#pragma once
// The results of `frazil reproduce pipe-bd` as a text for people and as JSON for programs. Both
// list the same results and sentences.

#include <string>
#include <vector>

#include "planner/reproduce/pipe_bd/pipe_bd_results.h"

namespace frazil {

std::string pipe_bd_text(const PipeBdResults& results);
// Returns {"speedups", "own_plans", "epoch", "schedules", "varying", "missed_speedups",
// "idle_is_within_tenth", "schedules_are_exact", "varying_is_as_known"}; docs/commands.md says what
// these hold.
std::string pipe_bd_json(const PipeBdResults& results);

// Returns a sentence for each row of all charts that is not reproduced.
std::vector<std::string> list_missed_speedups(const PipeBdResults& results);

}  // namespace frazil
