#pragma once
// The same question put to every schedule of the menu: which one wins on these costs, and what it
// holds in memory.

#include <optional>
#include <string>
#include <vector>

#include "planner/what_if/what_if.h"

namespace frazil {

struct ComparedSchedule {
  WhatIf what_if;
  WhatIfAnswer answer;        // where there is no reason against it
  double most_in_flight = 0;  // micro-batches (shares of one where it has chunks), of all devices
  int copies = 1;             // of the parameters: 2 for a schedule that runs both ways
  std::string reason;         // one sentence, of a schedule that cannot be made for these numbers
};

struct ComparisonOptions {
  std::vector<int> chunks = {2, 4};      // tried where a schedule leaves them open
  std::optional<double> most_in_flight;  // what fits on a device; the rest is refused by reason
};

// Feasible ones first by (makespan, most in flight, menu order); then the others in menu order.
// PipeDream's schedules are left out: without a flush their step is not the others' step. The
// schedule, chunks and in-flight depth of `question` are ignored.
std::vector<ComparedSchedule> compare_schedules(const WhatIf& question,
                                                const ComparisonOptions& options = {});

std::string print_comparison(const std::vector<ComparedSchedule>& compared);
std::string comparison_json(const std::vector<ComparedSchedule>& compared);

}  // namespace frazil
