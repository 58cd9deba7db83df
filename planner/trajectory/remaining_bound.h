#pragma once
// Computes remaining-cost bounds: what walks over plans and caches (cached_walk.h) still take at
// least from a segment on. The bound is the cheapest walk over plans alone in which each step may
// read whatever could have been cached by then. A cache of a segment's prefix, if some tier has
// room for it, can be read once an epoch of steps has passed since a segment with that prefix
// began, as long as no prefix since then, that of the segment that reads among them, was shorter.
// The bound leaves out the time of writing, and that only one cache is held at a time.

#include <functional>
#include <vector>

#include "planner/trajectory/cached_walk.h"

namespace frazil {

// Steps of a segment in which no cache deeper than `depth` can be read.
struct ReadableSteps {
  Step steps = 0;
  int depth = 0;
  friend bool operator==(const ReadableSteps&, const ReadableSteps&) = default;
};

// Splits each segment into such steps, in the order of time; returns them by segment.
std::vector<std::vector<ReadableSteps>> list_readable(const CacheQuestion& question);

// Returns a lower bound on the time of one step that a plan takes in a segment, where the step
// reads a cache no deeper than `depth` or reads none at all; kFarAway if the plan cannot run there.
using LeastStep = std::function<Duration(std::size_t segment, std::size_t plan, int depth)>;

// Returns the bounds by segment and plan. Requires: every segment has a step; `step` and the costs
// of change, which alone are read of `costs`, are never above those of the walks.
std::vector<std::vector<RemainingBound>> find_remaining_bound(const CacheQuestion& question,
                                                              const LeastStep& step,
                                                              const CacheCosts& costs);

}  // namespace frazil
