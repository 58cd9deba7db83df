#pragma once
// What a search for the best plan may choose from, and when it may end.

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/prediction/simulate_plan.h"
#include "profiles/model_profile.h"
#include "profiles/units.h"
#include "traces/freeze_mask.h"

namespace frazil {

// A plan that executes now, and what going over to another takes. With it plans are ranked by
// steps x makespan + switching, and the held one, where it fits, is a candidate.
struct HeldPlan {
  Plan plan;
  std::int64_t steps = 1;                                // to come
  std::function<Duration(const Plan&)> transition_time;  // >= 0; zero to the held plan itself
};

struct SearchOptions {
  int batch_size = 1;
  std::vector<int> micro_batch_sizes;  // a run in mode exact offers just its own
  std::vector<ScheduleKind> schedules = {ScheduleKind::kGpipe,
                                         ScheduleKind::kOneForwardOneBackward};
  FreezeMask mask;
  ReductionMode reduction = ReductionMode::kExact;
  std::optional<ReductionOverlap> overlap = std::nullopt;
  bool clip = false;
  int max_stages = 0;    // of a pipeline, chunks counted; 0: any number
  int max_replicas = 0;  // 0: as many as fit; a schedule that runs both ways counts as one
  // Also groups of unequal length, chunks and depths other than a schedule's own, and orders of
  // unequal devices. Without, devices are taken as they are listed.
  bool joint = false;
  bool recompute = false;  // also with all stages recomputing
  // Also with the frozen prefix cached, wherever it leaves a layer for each stage but the first.
  // Reading features takes no time here. The same where nothing is frozen before layer 1.
  bool cache = false;
  // Each shape also with the cuts for messages that run beside work (planner/search/propose.h).
  bool overlapped_cuts = true;
  int keep = 2;  // so many of the best plans are found; 0: everything is simulated and ranked
  // Ends after so many shapes were cut, as soon as one fits, with what is known of the rest; 0:
  // when the answer is proven.
  std::int64_t effort = 0;
  // Ends when `keep` plans are found and the best is proven to be no more than so many millionths
  // above the least there can be; the others are the best of those looked at.
  std::int64_t gap_ppm = 0;
  std::optional<HeldPlan> held = std::nullopt;  // not where everything is ranked
};

// 1, 2, 4, ... up to `batch_size` within the sizes at which every layer was measured; the nearest
// measured size when there is none.
std::vector<int> measured_sizes(const ModelProfile& profile, int batch_size);

}  // namespace frazil
