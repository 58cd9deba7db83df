#pragma once
// PlanCourse is the course of a run whose coming masks are known: which plan is held when, and what
// is cached meanwhile, so that all steps and transitions to come take the least time. It asks what
// `frazil plan --forecast` asks (planner/trajectory/plan_trajectory.h), with the schedules, batch,
// reduction, clipping and cache of the run, and with what the run has measured of a transition.
// Masks are known if they follow from the step alone (foresee_masks), and are at most 100 different
// ones. Asking the planner is left out of the price of a transition, for no transition asks.

#include <memory>
#include <optional>
#include <vector>

#include "exec/train/plans/plan_finder.h"
#include "exec/train/train_options.h"
#include "planner/freezing/freeze_authority.h"
#include "planner/trajectory/plan_trajectory.h"

namespace frazil {

// True if the run is to follow the planner's trajectories: it may change its plan, its batch is
// fixed, and its cache, if it has one, is filled where that pays.
bool follows_trajectories(const TrainOptions& options);

class PlanCourse {
 public:
  // Where a course begins. Equal origins give equal courses.
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
    Plan plan;        // under the mask, with nothing cached
    HeldCache cache;  // as its segment begins
  };

  // Serves a run over so many training samples. `options` must outlive this object.
  PlanCourse(const TrainOptions& options, const RunShape& run, std::int64_t samples);

  // Begins the course there, for plans as `finder` asks for them. Nothing is foreseen then if no
  // plan fits under some mask to come.
  void begin(const Origin& origin, const PlanFinder& finder,
             const std::optional<TransitionOverhead>& overhead);
  // Forgets the course: the devices are others.
  void end();
  // Says what a transition costs, after a course has begun that did not know.
  void set_overhead(const TransitionOverhead& overhead);

  // None: no course has begun.
  const std::optional<Origin>& origin() const { return origin_; }
  // Returns what is held at a step, and how far the run is on its course; none if the course does
  // not foresee this mask there.
  std::optional<Hold> hold(const FreezeMask& mask, Step step);
  // Returns what is held after that once the mask changes; none if it changes to another mask.
  std::optional<Hold> find_next(const FreezeMask& mask) const;
  // True if the mask is one that the course foresees.
  bool foresees(const FreezeMask& mask) const;
  // Returns the trajectory that the course follows; null: nothing is foreseen.
  const PlannedTrajectory* planned() const { return asked_ ? &asked_->planned : nullptr; }

 private:
  struct Asked {
    Cluster present;  // of the devices that are there
    std::unique_ptr<TrajectoryPlanner> planner = nullptr;
    PlannedTrajectory planned = {};
  };
  TrajectoryOptions question(const PlanFinder& finder) const;
  Hold hold_in(std::size_t segment) const;

  const TrainOptions& options_;
  RunShape run_;
  std::int64_t samples_;  // in all variants
  std::optional<std::vector<TracedMask>> forecast_;
  std::optional<Origin> origin_;
  std::unique_ptr<Asked> asked_;  // null: nothing is foreseen
  std::size_t segment_ = 0;       // of the last hold()
};

}  // namespace frazil
