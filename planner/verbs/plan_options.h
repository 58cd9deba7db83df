#pragma once
// Reads from the flags of frazil plan what they say about its search.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planner/order_search/order_search.h"
#include "planner/search/search.h"
#include "planner/verbs/flags.h"

namespace frazil {

// Returns the schedules that --schedules names, but for `search`; `pytorch` stands for all that
// PyTorch's runtime takes. Without the flag, all that are synchronous. Throws InputError.
std::vector<ScheduleKind> read_schedules(const Flags& values);

// Returns the words of which --schedules is a list, for completion.
std::vector<std::string_view> list_schedule_words(bool with_search);

// Returns the ranking's options (planner/search/rankings/rank_plans.h) with what the flags say.
SearchOptions read_options(const Flags& values, const ModelProfile& profile);

// Returns the plan with the flags in its provenance (--clip, --overlap-reductions) with which a
// step is timed as the search timed it.
Plan with_question(Plan plan, const SearchOptions& options);
// Returns a line if the provenance of the plan names such flags and they are not those of `asked`;
// else "".
std::string print_other_question(const Plan& plan, const StepOptions& asked);

// Returns the options of the search over orders of work if `search` is among the schedules; else
// none. Throws InputError.
std::optional<OrderSearchOptions> read_order_search(const Flags& values);
// Throws InputError if `search` is among the schedules beside `mode`, which is written as it was
// given.
void refuse_order_search(const Flags& values, const std::string& mode);

}  // namespace frazil
