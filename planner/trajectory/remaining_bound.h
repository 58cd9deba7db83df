#pragma once
// What walks over plans and caches (cached_walk.h) take at least from a segment on: the cheapest
// walk over plans alone, each step with whatever could have been cached by then. A cache of a
// segment's prefix can be read once an epoch of steps has passed since a segment with that prefix
// began, as long as no prefix between was shorter; what writing takes, and that one cache at a time
// is held, is left out.

#include <functional>
#include <vector>

#include "planner/trajectory/cached_walk.h"

namespace frazil {

// Steps of a segment through which no cache deeper than this can be read.
struct ReadableSteps {
  Step steps = 0;
  int depth = 0;
  friend bool operator==(const ReadableSteps&, const ReadableSteps&) = default;
};

// By segment, in the order of time; together its steps.
std::vector<std::vector<ReadableSteps>> list_readable(const CacheQuestion& question);

// Of a step of a plan in a segment that reads a cache no deeper than that, or none.
using LeastStep = std::function<Duration(std::size_t segment, std::size_t plan, int depth)>;

// By segment and plan; requires costs that are no more than those of the walks.
std::vector<std::vector<RemainingBound>> find_remaining_bound(const CacheQuestion& question,
                                                              const LeastStep& step,
                                                              const CacheCosts& costs);

}  // namespace frazil
