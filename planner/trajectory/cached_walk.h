#pragma once
// Which plan to hold when, and what to cache of the frozen prefix meanwhile: the cheapest walk
// through a row of segments, over plans and caches together. A cache of depth d holds what layers
// [0, d) put out, in a tier. At the begin of a segment a walk may
//   keep   what it has, filled or filling, also where the prefix is deeper by now
//   drop   it
//   fill   a cache at the end of the prefix, in some tier: the first `epoch` steps from here on run
//          what lies between and write, going on from the cache there was, or from the input where
//          there was none. A cache given up while it fills leaves what it was filled from
// and what reaches beyond a prefix that has thawed is lost. A shortest path over (segment, plan,
// cache), exact for any costs >= 0. Fills begin with segments alone.

#include <compare>
#include <functional>
#include <optional>
#include <vector>

#include "planner/trajectory/cheapest_walk.h"
#include "planner/transitions/feature_store.h"
#include "traces/freeze_trace.h"

namespace frazil {

struct HeldFeatures {
  int depth = 0;  // 0: none
  FeatureTier tier = FeatureTier::kMemory;
  friend auto operator<=>(const HeldFeatures&, const HeldFeatures&) = default;
};

struct HeldCache {
  HeldFeatures features;
  HeldFeatures source = {};  // while it fills
  Step left = 0;             // steps that fill, from here on
  friend auto operator<=>(const HeldCache&, const HeldCache&) = default;
};

// What a walk that holds a plan in a segment takes at least from there on, whatever it caches.
struct RemainingBound {
  Duration begin{0};  // with the segment
  Duration end{0};    // after it
};

struct CacheQuestion {
  std::vector<Step> steps;          // by segment
  std::vector<int> prefix;          // by segment: how deep a cache may be
  std::vector<HeldFeatures> rooms;  // that a tier has room for
  Step epoch = 1;
  std::size_t plans = 1;
  Duration limit = kFarAway;  // dearer walks are not looked for
  std::vector<std::vector<RemainingBound>> rest =
      {};  // by segment and plan; none: nothing is known
};

// kFarAway where it cannot be.
struct CacheCosts {
  // A step that reads these features, or none.
  std::function<Duration(std::size_t segment, std::size_t plan, HeldFeatures)> step;
  // A step that fills these from those.
  std::function<Duration(std::size_t segment, std::size_t plan, HeldFeatures, HeldFeatures from)>
      fill;
  // Of a change of plans at the begin of a segment.
  std::function<Duration(std::size_t segment, std::size_t from, std::size_t to)> change;
};

struct CachedWalk {
  Duration total{0};
  std::vector<std::size_t> plans;  // by segment
  std::vector<HeldCache> caches;   // by segment, as it begins
};

// Of equal ones that with the fewest changes of plan and cache. None where no walk is possible
// within the limit. What cannot end within it is left as soon as that is known, before its costs
// are asked for.
std::optional<CachedWalk> find_cached_walk(const CacheQuestion& question, const CacheCosts& costs);

// What there is after so many steps.
HeldCache after(HeldCache cache, Step steps);

}  // namespace frazil
