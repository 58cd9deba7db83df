#pragma once
// clang-format off
// Finds which plan to hold when, and what to cache of the frozen prefix meanwhile: the cheapest
// walk through a row of segments, over plans and caches together. A cache of depth d holds the
// outputs (features) of layers [0, d), in one tier. At the begin of a segment a walk may
//   keep   the cache it has if that is filled, even if the prefix is deeper by then, or if the
//          prefix is as deep as it was
//   drop   that cache
//   fill   a cache at the end of the prefix, in some tier: in each of the next `epoch` steps the
//          layers between the source and that end run, and their output is written. The source is
//          the filled cache held so far, or the input if there was none
// These are the caches that a run can have (exec/cache/feature_cache.h): it stores at the end of the
// prefix alone. A cache that is still filling when the prefix grows is given up, and counts for
// nothing, though a run reads what of it there is. A cache is lost that reaches beyond a prefix that
// has thawed, or to which a prefix that had grown beyond it comes back. The walk is a shortest path
// over (segment, plan, cache), exact for any costs >= 0. Fills begin only where a segment begins.
// clang-format on

#include <compare>
#include <functional>
#include <optional>
#include <vector>

#include "planner/trajectory/cheapest_walk.h"
#include "planner/transitions/feature_store.h"
#include "traces/freeze_trace.h"

namespace frazil {

struct HeldFeatures {
  int depth = 0;  // layers [0, depth); 0: none
  FeatureTier tier = FeatureTier::kMemory;
  friend auto operator<=>(const HeldFeatures&, const HeldFeatures&) = default;
};

struct HeldCache {
  HeldFeatures features;
  HeldFeatures source = {};  // read while the cache fills
  Step left = 0;             // steps that still fill, from here on
  bool is_none() const { return features.depth == 0; }
  friend auto operator<=>(const HeldCache&, const HeldCache&) = default;
};

// The remaining-cost bound: what a walk that holds a plan in a segment still takes at least,
// whatever it caches.
struct RemainingBound {
  Duration begin{0};  // from the segment's begin on
  Duration end{0};    // from its end on
};

struct CacheQuestion {
  std::vector<Step> steps;          // by segment
  std::vector<int> prefix;          // by segment: how deep a cache may be
  std::vector<HeldFeatures> rooms;  // all features that a tier has room for
  Step epoch = 1;                   // steps that filling takes
  std::size_t plans = 1;
  // The plan held before the first segment, without a cache; none: the first plan is free to
  // choose.
  std::optional<std::size_t> start = std::nullopt;
  Duration limit = kFarAway;  // dearer walks are not looked for
  // Remaining-cost bounds by segment and plan; empty: nothing is known.
  std::vector<std::vector<RemainingBound>> rest = {};
};

// The costs of a walk; each is kFarAway if what it asks for cannot be.
struct CacheCosts {
  // One step that reads these features, or no cache if their depth is 0.
  std::function<Duration(std::size_t segment, std::size_t plan, HeldFeatures)> step;
  // One step that fills the features and reads those of `from`.
  std::function<Duration(std::size_t segment, std::size_t plan, HeldFeatures, HeldFeatures from)>
      fill;
  // One transition from plan to plan at the beginning of a segment; of the first one if there is a
  // start.
  std::function<Duration(std::size_t segment, std::size_t from, std::size_t to)> change;
};

struct CachedWalk {
  Duration total{0};
  std::vector<std::size_t> plans;  // by segment
  std::vector<HeldCache> caches;   // by segment, as the segment begins
};

// Finds the cheapest walk; of equally cheap walks, the one with the fewest changes of plan and
// cache. Returns none if no walk is possible within the limit. A partial walk that cannot end
// within the limit is left as soon as that is known, before its further costs are asked for.
// Requires: some segment and some plan, a prefix for each segment, and `rest` for each segment or
// empty.
std::optional<CachedWalk> find_cached_walk(const CacheQuestion& question, const CacheCosts& costs);

// Returns the cache that is left of `cache` after so many steps: nearer to being filled, or filled.
HeldCache after(HeldCache cache, Step steps);

}  // namespace frazil
