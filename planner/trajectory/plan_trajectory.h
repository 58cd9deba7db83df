#pragma once
// Plans over the freezing to come: for a forecast of masks, which plan to hold from when, so that
// all steps and all switches between plans together take the least time. Candidates are the best
// plans of the search under each mask of the forecast; each is simulated under every mask, each
// switch is predicted (transition_cost.h), and the walk through them is the cheapest there is. With
// a store for features the walk also chooses what of the frozen prefix is cached when, and where
// (plan_caches.h); then the best plans of a search that may cache are candidates, too.

#include <string>
#include <vector>

#include "planner/search/search.h"
#include "planner/trajectory/cache_plan.h"
#include "planner/trajectory/cheapest_walk.h"
#include "planner/transitions/transition_cost.h"
#include "traces/freeze_trace.h"

namespace frazil {

// From `step` on, for `steps` steps, under one mask.
struct ForecastSegment {
  Step step = 0;
  Step steps = 0;
  FreezeMask mask;
  friend bool operator==(const ForecastSegment&, const ForecastSegment&) = default;
};

// The masks of a trace, to its last step: neighbours differ, each has a step. All blocks are active
// until the first. Throws InputError{file} where the trace says no steps, or a mask after them.
std::vector<ForecastSegment> find_segments(const FreezeTrace& trace, const std::string& file);

struct TrajectoryOptions {
  SearchOptions search = {};  // its mask is not read
  int plans_per_mask = 3;     // candidates that each mask's search adds
  // Of so many of each mask's best plans the cuts are moved first (planner/search/moved_cuts.h),
  // with at most four times the actions of one search for all masks, and as many for plans that
  // cache; 0: none.
  int moved_plans = 0;
  TransitionOverhead overhead = {};
  std::optional<FeatureStore> store = std::nullopt;
  Step decide_every = 1;  // the rule without a forecast looks every so many steps
};

// One change of plan.
struct PlannedTransition {
  std::size_t segment = 0;  // at its begin
  std::size_t from = 0;     // candidates
  std::size_t to = 0;
  TransitionCost cost;
  bool forced = false;  // `from` does not fit under the mask that comes
  // Steps from here until holding `to` has saved, against holding `from`, what the switch costs;
  // none: forced, or it does not within the forecast.
  std::optional<Step> break_even = std::nullopt;
};

// The rule that knows no forecast (work_function.h), over the same candidates and masks.
struct OnlineRun {
  Duration paid{0};
  Duration hindsight{0};   // the least at the same symmetric prices
  std::size_t factor = 1;  // paid <= factor x hindsight + additive, whatever the masks had been
  Duration additive{0};
  int changes = 0;
  std::size_t candidates = 0;  // those that fit under every mask
};

struct PlannedTrajectory {
  std::vector<ForecastSegment> segments;
  std::vector<Plan> candidates;  // under an all-active mask
  // Of a step, by segment and candidate; kFarAway where it does not fit. Exact of the walks and the
  // switches below; elsewhere it may be a lower bound.
  std::vector<std::vector<Duration>> step_times;
  Trajectory best;  // with what is cached
  std::vector<PlannedTransition> switches;
  std::optional<CachePlan> caches;     // with a store
  std::optional<Trajectory> uncached;  // with a store: the best without it
  // Nothing of these is cached:
  std::optional<Trajectory> held;    // one plan throughout
  std::optional<Trajectory> greedy;  // always the plan that is best under the mask
  std::optional<OnlineRun> online;   // none where no candidate fits throughout
};

// Throws InfeasibleError where some mask has no plan that fits.
PlannedTrajectory plan_trajectory(const ModelProfile& profile, const Cluster& cluster,
                                  const std::vector<ForecastSegment>& segments,
                                  const TrajectoryOptions& options);

}  // namespace frazil
