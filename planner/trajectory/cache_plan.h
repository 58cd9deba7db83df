#pragma once
// What a planned trajectory caches of the frozen prefix, when and where.

#include <optional>
#include <vector>

#include "planner/trajectory/cached_walk.h"

namespace frazil {

// A cache that begins to fill.
struct PlannedFill {
  std::size_t segment = 0;
  HeldFeatures features;
  HeldFeatures source;
  Bytes bytes = {};  // of all samples
  Step steps = 0;    // that fill, fewer than an epoch's where it is given up or the forecast ends
  Duration cost{0};  // steps x (one that fills - one that reads)
  // Steps from here until filling and reading has taken no more than going on with the source; none
  // where it does not while the cache is held.
  std::optional<Step> break_even = std::nullopt;
};

struct CachePlan {
  CachedWalk walk;
  std::vector<Bytes> bytes;          // by segment, of all samples
  std::vector<Duration> step_times;  // by segment, of a step that reads, or where none does fills
  std::vector<PlannedFill> fills;
  // Where no tier holds the features of any mask: what the smallest take.
  std::optional<Bytes> least_room = std::nullopt;
};

}  // namespace frazil
