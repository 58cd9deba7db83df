#pragma once
// PlanCourse is the course of a run: which plan it holds when, and what it caches meanwhile. It
// asks what `frazil plan --forecast` asks, with the schedules, batch, reduction, clipping and cache
// of the run, and with what the run has measured of a transition.
// clang-format off
//   masks known    they follow from the step alone (foresee_masks), and are at most 100 different
//                  ones: the trajectory with which all steps and transitions to come take the least
//                  time (planner/trajectory/plan_trajectory.h)
//   else           the rule that knows no forecast (planner/trajectory/online_plans.h); it may leave
//                  a plan before any step
// clang-format on
// Asking the planner is left out of the price of a transition, for no transition asks.

#include <map>

#include "analysis/plan_regret.h"
#include "exec/train/plans/plan_finder.h"
#include "planner/freezing/freeze_authority.h"
#include "planner/trajectory/online_plans.h"
#include "planner/trajectory/plan_trajectory.h"

namespace frazil {

class PlanCourse {
 public:
  // Where a course begins. Equal origins and masks give equal courses.
  struct Origin {
    Step step = 0;
    std::vector<DeviceId> devices;                                   // that are there, ascending
    std::optional<TrajectoryOptions::Before> before = std::nullopt;  // a plan that goes on there
    // Whether it was known what a transition costs. If not, the first plan is chosen as if
    // transitions were free, and is held at the origin whatever they turn out to cost.
    bool overhead_known = false;
    friend bool operator==(const Origin&, const Origin&) = default;
  };
  // What the course holds from some step on.
  struct Hold {
    Plan plan;  // under the mask, with nothing cached
    // What is cached as its segment begins; none: that is for others to say.
    std::optional<HeldCache> cache = std::nullopt;
  };

  // Serves a run over so many training samples, for plans as `finder` asks for them. The references
  // must outlive this object.
  PlanCourse(const TrainOptions& options, const RunShape& run, std::int64_t samples,
             PlanFinder& finder);

  // True if the run is to follow a course: it may change its plan, no other system's planner leads
  // it, something freezes, its batch is fixed, and its cache, if any, is filled where that pays.
  bool is_on() const { return is_on_; }
  // Begins the course there, under this mask. Requires: is_on().
  void begin(const Origin& origin, const FreezeMask& mask,
             const std::optional<TransitionOverhead>& overhead);
  // Forgets the course: the devices are others.
  void end();
  // Says what a transition costs, after a course has begun that did not know.
  void set_overhead(const TransitionOverhead& overhead);

  // None: no course has begun.
  const std::optional<Origin>& origin() const { return origin_; }
  // Returns what is held in a step, by which the course has come to it. None if no plan fits under
  // the mask, as far as the course knows; the course is over then. Requires: steps do not decrease.
  std::optional<Hold> hold(const FreezeMask& mask, Step step);
  // Takes a step under the mask of the last hold(). Returns whether another plan is then held.
  bool leaves(Step step);

  // Returns what is held after the last hold() once the mask changes; none: that is not known.
  std::optional<Hold> find_next(const FreezeMask& mask) const;
  // True if the course knows plans for the mask, or that there are none.
  bool knows(const FreezeMask& mask) const;
  // Returns whether some plan fits, which is found out if it is not known. Requires: a course.
  bool has_plans(const FreezeMask& mask) {
    return foresees(mask) || !find_candidates(mask).empty();
  }
  // Takes the plans under a mask that PlanFinder::find_candidates() has found.
  void learn(const FreezeMask& mask, std::vector<Plan> found);
  // Returns what the plans cost from the origin on; none: there is no course.
  std::optional<PlanRegret> find_regret() const;

 private:
  struct Foreseen {
    Cluster present;  // of the devices that are there
    std::unique_ptr<TrajectoryPlanner> planner = nullptr;
    PlannedTrajectory planned = {};
    // Of the cheapest trajectory had the overhead been known before the first plan; none: it was.
    std::optional<Duration> hindsight = std::nullopt;
  };
  struct Online {
    Cluster present;
    Plan first;
    std::optional<OnlinePlans> plans = std::nullopt;  // none: what a transition costs is not known
    FreezeMask mask = {};
    Step next = 0;  // the first step that the rule has not taken
  };
  bool foresees(const FreezeMask& mask) const;
  bool foresee(const std::optional<TransitionOverhead>& overhead);
  void go_without_forecast(const FreezeMask& mask,
                           const std::optional<TransitionOverhead>& overhead);
  void begin_rule(const TransitionOverhead& overhead);
  const std::vector<Plan>& find_candidates(const FreezeMask& mask);
  std::optional<Hold> hold_foreseen(const FreezeMask& mask, Step step);
  std::optional<Hold> hold_online(const FreezeMask& mask, Step step);
  Hold hold_in(std::size_t segment) const;

  const TrainOptions& options_;
  RunShape run_;
  std::int64_t samples_;  // in all variants
  PlanFinder& finder_;
  std::optional<std::vector<TracedMask>> forecast_;
  bool is_on_;
  std::optional<Origin> origin_;
  std::unique_ptr<Foreseen> foreseen_;
  std::size_t segment_ = 0;                              // of the last hold(), where foreseen
  std::unique_ptr<Online> online_;                       // where not
  std::map<std::string, std::vector<Plan>> candidates_;  // by the mask's bits
};

}  // namespace frazil
