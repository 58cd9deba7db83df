#pragma once
// A lower bound on the time of a step when the cuts of a group are known: on each of its devices,
// what one micro-batch must meet before (head), all its work, and what must follow: the B (or I) of
// the stages before and their updates, or its own reduction and update.
//   busiest-device           (backwards fused) head + work + max(tail, reduction + update)
//   general-floor            (backwards split: W may come last) head + work + reduction + update
//   gradient-chain           (split) head + F, R and I + tail of I
//   device-warm-up-cool-down and gradient-chain of planner/linear_bounds.h + reduction + update, of
//                            linear schedules with K in flight, where every boundary carries
// Reductions of a device's stages run one after the other, and each is followed by its update.
// Heads and tails follow the boundaries between neighbouring stages alone, as far as the layers on
// both sides are joined. The short micro-batch counts for nothing.

#include "planner/search/propose.h"
#include "planner/search/work_bound.h"

namespace frazil {

// Of the group of class `group`.
NamedBound bound_group(const Shape& shape, const GroupClass& group,
                       const std::vector<LayerSpan>& spans, const ChainSums& sums,
                       const Cluster& machine, const WorkBounds& reductions, const Owners& owners);

}  // namespace frazil
