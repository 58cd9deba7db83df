#pragma once
// What the flags of frazil plan say of its search.

#include <optional>
#include <string>

#include "planner/order_search/order_search.h"
#include "planner/search/search.h"
#include "planner/verbs/flags.h"

namespace frazil {

SearchOptions read_options(const Flags& values, const ModelProfile& profile);

// The plan, whose provenance says with which flags beside it a step is timed as the search did.
Plan with_question(Plan plan, const SearchOptions& options);
// A line where those flags are others than a step's; else "".
std::string print_other_question(const Plan& plan, const StepOptions& asked);

// Of orders of work, where `search` is among the schedules.
std::optional<OrderSearchOptions> read_order_search(const Flags& values);
// Refuses that beside `mode`, which is written as it was given.
void refuse_order_search(const Flags& values, const std::string& mode);

}  // namespace frazil
