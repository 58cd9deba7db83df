#pragma once
// The search: proposes plans over pipeline length x replicas x micro-batch size x schedule, lets
// the simulator judge each, and ranks them. What does not fit stays in the ranking with its reason.

#include <vector>

#include "planner/ranking.h"

namespace frazil {

struct SearchOptions {
  int batch_size = 1;
  std::vector<int> micro_batch_sizes;  // a run in mode exact offers just its own
  std::vector<ScheduleKind> schedules = {ScheduleKind::kGpipe,
                                         ScheduleKind::kOneForwardOneBackward};
  FreezeMask mask;
  ReductionMode reduction = ReductionMode::kExact;
  bool clip = false;
  int max_stages = 0;    // 0: as many as devices
  int max_replicas = 0;  // 0: as many as fit
};

// 1, 2, 4, ... up to `batch_size` within the sizes at which every layer was measured; the nearest
// measured size when there is none.
std::vector<int> measured_sizes(const ModelProfile& profile, int batch_size);

// Replica r of p stages takes devices r p .. r p + p - 1; micro-batches are dealt in contiguous
// shares, equal up to one. Devices left over stay idle.
Ranking search_plans(const ModelProfile& profile, const Cluster& cluster,
                     const SearchOptions& options);

}  // namespace frazil
