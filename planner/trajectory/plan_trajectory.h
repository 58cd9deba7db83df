#pragma once
// Plans for the freezing to come: given a forecast of masks, finds which plan to hold from when, so
// that all steps and all transitions between plans together take the least time. Candidates are the
// best plans of the search under each mask of the forecast. Each is simulated under every mask, at
// the costs of the mask's segment where a run has measured other ones than the profile's; each
// transition is predicted (planner/transitions/transition_cost.h), and the walk through them is the
// cheapest there is. With a store for features the walk also chooses what of the frozen prefix is
// cached, when, and where (plan_caches.h); the best plans of a search that may cache are then
// candidates, too.

#include <memory>
#include <optional>
#include <vector>

#include "planner/search/search.h"
#include "planner/trajectory/cache_plan.h"
#include "planner/trajectory/cheapest_walk.h"
#include "planner/trajectory/forecast_segments.h"
#include "planner/transitions/transition_cost.h"
#include "profiles/setting.h"

namespace frazil {

struct TrajectoryOptions {
  // Its mask is not read. All masks together may spend at most four times its cut effort, and plans
  // that cache as much again.
  SearchOptions search = {};
  int plans_per_mask = 3;  // candidates that each mask's search adds; at least so many are kept
  TransitionOverhead overhead = {};
  std::optional<FeatureStore> store = std::nullopt;
  Step decide_every = 1;  // steps between two decisions of the rule without a forecast
  // A plan that is held before the first segment; the transition from it is a cost like any other.
  // None: the first plan is free to choose.
  struct Before {
    Plan plan;
    FreezeMask trained;  // the mask until then
    friend bool operator==(const Before&, const Before&) = default;
  };
  std::optional<Before> before = std::nullopt;
  bool compares = true;  // false: `held`, `greedy` and `online` below are left out
};

// One transition from plan to plan, at the beginning of a segment; none is counted from
// TrajectoryOptions::before.
struct PlannedTransition {
  std::size_t segment = 0;
  std::size_t from = 0;  // index of a candidate
  std::size_t to = 0;    // likewise
  TransitionCost cost;
  bool forced = false;  // `from` does not fit under the segment's mask
  // Steps from here until holding `to` instead of `from` has saved what the transition costs; none
  // if it is forced, or if that is not so within the forecast.
  std::optional<Step> break_even = std::nullopt;
};

// The outcome of the rule that knows no forecast (work_function.h), over these candidates and
// masks.
struct OnlineRun {
  Duration paid{0};
  Duration hindsight{0};   // the least cost at the same symmetric prices, all masks known
  std::size_t factor = 1;  // paid <= factor x hindsight + additive, whatever the masks are
  Duration additive{0};
  int changes = 0;
  std::size_t candidates = 0;  // those that fit under every mask
};

struct PlannedTrajectory {
  std::vector<ForecastSegment> segments;
  std::vector<Plan> candidates;  // with all blocks active
  // Times of one step, by segment and candidate; kFarAway if the candidate does not fit. They are
  // exact for the walks and transitions below; elsewhere they may be lower bounds.
  std::vector<std::vector<Duration>> step_times;
  Trajectory best;  // its total takes `caches` into account
  std::vector<PlannedTransition> transitions;
  std::optional<CachePlan> caches;     // if there is a store
  std::optional<Trajectory> uncached;  // if there is a store: the best walk that caches nothing
  // The following three cache nothing.
  std::optional<Trajectory> held;    // the best that holds one plan throughout
  std::optional<Trajectory> greedy;  // always the plan that is fastest under the mask
  std::optional<OnlineRun> online;   // none if no candidate fits under every mask
};

// Plans trajectories over one forecast. What does not depend on the overhead is worked out once.
class TrajectoryPlanner {
 public:
  // Finds the candidates. The profile and the cluster must outlive this. Throws InfeasibleError if
  // under some mask no plan fits. Requires: at least one segment, and both plans_per_mask and
  // decide_every at least 1.
  TrajectoryPlanner(Setting setting, const std::vector<ForecastSegment>& segments,
                    TrajectoryOptions options);
  ~TrajectoryPlanner();

  // Plans the trajectory for this overhead. `held`: a candidate that is held before the first
  // segment, under its mask, in place of TrajectoryOptions::before. Throws InfeasibleError if all
  // walks take too long to be added up.
  PlannedTrajectory plan(const TransitionOverhead& overhead,
                         std::optional<std::size_t> held = std::nullopt);

 private:
  class Walks;
  std::unique_ptr<Walks> walks_;
};

// Plans one trajectory, for the overhead of the options, as a TrajectoryPlanner does.
PlannedTrajectory plan_trajectory(Setting setting, const std::vector<ForecastSegment>& segments,
                                  const TrajectoryOptions& options);

}  // namespace frazil
