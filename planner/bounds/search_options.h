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

// The plan that is being executed, and what a transition to another plan takes. If there is one,
// plans are ranked by steps x makespan + transition time, and the held plan is a candidate if it
// fits.
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
  // The search also takes groups of unequal length, chunks and depths other than a schedule's own,
  // and orders of unequal devices. If false, devices are taken as they are listed.
  bool joint = false;
  bool recompute = false;  // also plans whose stages all recompute
  // The search also takes plans that cache the frozen prefix, wherever this leaves a layer for each
  // stage but the first. Reading features takes no time here. No plan is added if nothing is frozen
  // before layer 1.
  bool cache = false;
  // Each shape is also tried with the cuts for messages that run beside work
  // (planner/search/propose.h).
  bool overlapped_cuts = true;
  int keep = 2;  // so many of the best plans are found; 0: all are simulated and ranked
  // The search ends once so many shapes were cut and one of all shapes fits, with what is known of
  // the rest; 0: it ends when the answer is proven.
  std::int64_t effort = 0;
  // The search ends when `keep` plans are found and the best is proven to be no more than so many
  // millionths above the least there can be (the optimality gap); the other plans are the best of
  // those looked at.
  std::int64_t gap_ppm = 0;
  std::optional<HeldPlan> held = std::nullopt;  // none if `keep` is 0
};

// Returns 1, 2, 4, ... up to `batch_size` within the sizes at which every layer was measured; the
// nearest measured size if there is none.
std::vector<int> measured_sizes(const ModelProfile& profile, int batch_size);

}  // namespace frazil
