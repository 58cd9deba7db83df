#pragma once
// Puts the same question to every schedule of the menu: which one wins at these costs, and what
// each holds in memory.

#include <optional>
#include <string>
#include <vector>

#include "planner/what_if/what_if.h"

namespace frazil {

struct ComparedSchedule {
  WhatIf what_if;
  WhatIfAnswer answer;        // if `reason` is empty
  double most_in_flight = 0;  // micro-batches on the fullest device; a chunk counts as its share
  int copies = 1;             // of the parameters: 2 for a schedule that runs both ways
  std::string reason;         // one sentence that says why the schedule is excluded, or ""
};

struct ComparisonOptions {
  std::vector<int> chunks = {2, 4};      // tried if a schedule leaves their number open
  std::optional<double> most_in_flight;  // micro-batches that fit on a device
};

// Returns the feasible schedules first, by (makespan, most in flight, menu order), then the
// excluded ones in menu order. PipeDream's schedules are left out: without a flush their step is
// not the step of the others. The schedule, chunks and in-flight depth of `question` are ignored.
std::vector<ComparedSchedule> compare_schedules(const WhatIf& question,
                                                const ComparisonOptions& options = {});

std::string print_comparison(const std::vector<ComparedSchedule>& compared);
std::string comparison_json(const std::vector<ComparedSchedule>& compared);

}  // namespace frazil
