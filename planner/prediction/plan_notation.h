#pragma once
// How tables write plans: "4 x 2", stages of a pipeline x pipelines ("4 x 3 (2 of 3)": two of the
// three pipelines have 3 stages), and a schedule with suffixes for what is not its own:
// "interleaved v4 K3 R".

#include <cstddef>
#include <string>

#include "planner/plan/plan.h"

namespace frazil {

std::string shape_notation(std::size_t stages, std::size_t pipelines);
std::string shape_notation(const Plan& plan);

// "1f1b"; "search" where the lists come from a search of orders; of other given lists "explicit".
std::string schedule_notation(const Plan& plan);
// Whether the stages of a plan recompute, all of them as a search makes them.
bool recomputes(const Plan& plan);

// Which suffixes are in use, for the legend below a table.
struct Suffixes {
  bool chunks = false;     // v
  bool in_flight = false;  // K
  bool recompute = false;  // R
  void add(const Suffixes& others);
};
Suffixes suffixes_of(const NamedSchedule& schedule, bool recompute);
Suffixes suffixes_of(const Plan& plan);

// The schedule's name and the suffixes that it has; "cached" after those of a plan with a cached
// prefix.
std::string variant_notation(const NamedSchedule& schedule, bool recompute);
std::string variant_notation(const Plan& plan);

// One line that says what the suffixes mean; nothing where there are none.
std::string explain_suffixes(const Suffixes& suffixes);

}  // namespace frazil
