#pragma once
// Describes which outputs (features) of the frozen prefix a planned trajectory caches, when, and in
// which tier.

#include <optional>
#include <vector>

#include "planner/trajectory/cached_walk.h"

namespace frazil {

// A cache that begins to fill at the beginning of a segment.
struct PlannedFill {
  std::size_t segment = 0;
  HeldFeatures features;
  HeldFeatures source;  // read while `features` are filled; depth 0: the model's input is read
  Bytes bytes = {};     // of all samples
  // Steps that fill: fewer than an epoch's if the cache is given up or the forecast ends first.
  Step steps = 0;
  // steps x (time of a step that fills - time of a step that reads)
  Duration cost{0};
  // Steps from here until filling and then reading has taken no more time than going on with the
  // source; none if that is not so while the cache is held.
  std::optional<Step> break_even = std::nullopt;
};

struct CachePlan {
  CachedWalk walk;
  std::vector<Bytes> bytes;  // by segment, of all samples
  // Time of a step that reads the cache, by segment; if all steps of a segment fill, of such a
  // step.
  std::vector<Duration> step_times;
  std::vector<PlannedFill> fills;
  // The bytes that the smallest features take, if no tier has room for the features of any mask;
  // else none.
  std::optional<Bytes> least_room = std::nullopt;
  // Hosts of the devices. The times are those of one cache that all pipelines share, and those of
  // several hosts share none.
  int hosts = 1;
};

}  // namespace frazil
