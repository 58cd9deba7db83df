#pragma once
// What a trajectory caches of the frozen prefix, and which plans it holds for that: every plan
// under every mask without a cache, or with one in a tier that has room (cached_walk.h), steps
// simulated with what is cached left out and reading and filling charged as in feature_store.h.
// Costs begin as lower bounds and those of the cheapest walk are made exact until all of them are.
// Walks are looked for below a limit alone, which doubles its way up from what any walk takes at
// least (remaining_bound.h): within one that holds an exact walk the cheapest is the cheapest of
// all. A run is not told any of this yet: it caches the whole prefix, in memory first.

#include <functional>
#include <optional>
#include <vector>

#include "planner/trajectory/cache_plan.h"
#include "planner/trajectory/step_times.h"

namespace frazil {

// Changes of plan between segments.
struct PlanChanges {
  std::function<Duration(std::size_t segment, std::size_t from, std::size_t to)> known;  // no more
  std::function<Duration(std::size_t segment, std::size_t from, std::size_t to)> exact;
};

// A mask by its steps; `mask` counts those of the step times.
struct MaskedSegment {
  Step steps = 0;
  std::size_t mask = 0;
  int prefix = 0;  // layers that may be cached
};

class CachePlanner {
 public:
  // All must outlive this.
  CachePlanner(const ModelProfile& profile, const std::vector<Plan>& plans,
               const std::vector<MaskedSegment>& segments, const FeatureStore& store,
               StepTimes& steps);

  // None where all walks cost more than `uncached`, one that caches nothing.
  std::optional<CachePlan> plan(const PlanChanges& changes, const Trajectory& uncached);
  // A step of any plan in a segment, exact, with these features where the plan can read them, else
  // without. kFarAway where it does not fit.
  Duration step_time(std::size_t segment, std::size_t plan, HeldFeatures features);
  // The same while they are filled, from what there is.
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
  Bytes room_of(HeldFeatures features) const;  // nothing takes none
  Duration price(const CachedWalk& walk, const CacheCosts& costs) const;
  CachePlan describe(const CachedWalk& walk);
  void follow(const CachedWalk& walk, PlannedFill& fill);

  const std::vector<Plan>& plans_;
  const std::vector<MaskedSegment>& segments_;
  const FeatureStore& store_;
  StepTimes& steps_;
  CacheQuestion question_;
  std::vector<Bytes> of_sample_;     // by depth
  std::optional<Bytes> least_room_;  // that the features of a depth take, in whatever tier
};

}  // namespace frazil
