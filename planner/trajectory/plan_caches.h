#pragma once
// Plans what a trajectory caches of the frozen prefix, and which plans it holds for that. The
// choices are every plan under every mask without a cache, or with one in a tier that has room
// (cached_walk.h); steps are simulated with the cached layers left out, and reading and filling are
// charged as in planner/transitions/feature_store.h.
// All costs begin as lower bounds. Again and again the cheapest walk is looked for and its costs
// are made exact, until the walk that is found has no cost left that is only a bound. Walks are
// looked for only below a limit. It starts a little above what any walk takes at least
// (remaining_bound.h), and its distance from there doubles until a walk with exact costs lies below
// it; the cheapest walk below it is then the cheapest of all.

#include <functional>
#include <optional>
#include <vector>

#include "planner/trajectory/cache_plan.h"
#include "planner/trajectory/step_times.h"

namespace frazil {

// Gives costs of transitions from plan to plan at the beginning of a segment; `known` is no more
// than `exact`.
struct PlanChanges {
  std::function<Duration(std::size_t segment, std::size_t from, std::size_t to)> known;
  std::function<Duration(std::size_t segment, std::size_t from, std::size_t to)> exact;
};

// The steps and the mask of a segment; `mask` is an index into the masks of the StepTimes.
struct MaskedSegment {
  Step steps = 0;
  std::size_t mask = 0;
  int prefix = 0;  // layers that may be cached
};

class CachePlanner {
 public:
  // Keeps references to all arguments, which must outlive it.
  CachePlanner(const ModelProfile& profile, const std::vector<Plan>& plans,
               const std::vector<MaskedSegment>& segments, const FeatureStore& store,
               StepTimes& steps);

  // Returns the cheapest plan of caches; none if every walk costs more than `uncached`, the best
  // walk that caches nothing. `start`: the plan held before the first segment, if there is one.
  std::optional<CachePlan> plan(const PlanChanges& changes, const Trajectory& uncached,
                                std::optional<std::size_t> start = std::nullopt);
  // Returns the exact time of a step of any plan in a segment. The step reads these features if the
  // plan can, else no cache. kFarAway if it does not fit.
  Duration step_time(std::size_t segment, std::size_t plan, HeldFeatures features);
  // Returns the exact time of a step while `cache` is filled from its source; if the plan cannot
  // fill it, the step reads the source.
  Duration filling_step_time(std::size_t segment, std::size_t plan, const HeldCache& cache);

 private:
  void list_rooms(const ModelProfile& profile);
  Duration reading(std::size_t plan, HeldFeatures features) const;
  Duration read_step(Duration work, std::size_t plan, HeldFeatures features) const;
  Duration fill_step(Duration work, std::size_t plan, HeldFeatures features,
                     HeldFeatures source) const;
  Duration find_least_step(std::size_t segment, std::size_t plan, int depth);
  Duration exact_read(std::size_t segment, std::size_t plan, HeldFeatures features);
  Duration exact_fill(std::size_t segment, std::size_t plan, HeldFeatures features,
                      HeldFeatures source);
  bool sharpen(const CachedWalk& walk, const PlanChanges& changes);
  Bytes room_of(HeldFeatures features) const;  // of all samples; 0 for depth 0
  std::optional<std::size_t> plan_before(const CachedWalk& walk, std::size_t segment) const;
  Duration price(const CachedWalk& walk, const CacheCosts& costs) const;
  CachePlan describe(const CachedWalk& walk);
  void follow(const CachedWalk& walk, PlannedFill& fill);

  const std::vector<Plan>& plans_;
  const std::vector<MaskedSegment>& segments_;
  const FeatureStore& store_;
  StepTimes& steps_;
  CacheQuestion question_;
  std::vector<Bytes> of_sample_;     // by depth
  std::optional<Bytes> least_room_;  // for the smallest features of all samples, in any tier
};

}  // namespace frazil
