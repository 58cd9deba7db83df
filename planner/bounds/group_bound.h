#pragma once
// A lower bound on the time of a step when the cuts of a group are known: on each of its devices,
// what one micro-batch must meet before (head), all its work, and what must follow: the B (or I) of
// the stages before and their updates, or its own reduction and update (group_loads.h).
//   busiest-device           (backwards fused) head + work + max(tail, reduction + update)
//   general-floor            (backwards split: W may come last) head + work + reduction + update
//   gradient-chain           (split) head + F, R and I + tail of I
//   device-warm-up-cool-down and gradient-chain of planner/prediction/linear_bounds.h + reduction +
//   update, of
//                            linear schedules with K in flight, where every boundary carries; of
//                            2bp its I alone, then all W
//   messages                 (one direction) a device sends one message at a time: until its first
//                            F, all its messages, and what the last of them still has before it
//   two-phases               (gpipe, looped-bfs: no B of a device before its last F) until the last
//                            stage's device has its last F: of any device, head + F + what one
//                            micro-batch still has before it; then of any device the B of one
//                            micro-batch in the later stages, its own, and max(tail, ..) as above
// Reductions of a device's stages run one after the other, and each is followed by its update.

#include "planner/bounds/group_loads.h"

namespace frazil {

// Requires: the loads are those of the variant's placement, chunks, recomputing and backwards.
NamedBound bound_group(const ShapeVariant& variant, const GroupLoads& loads);

}  // namespace frazil
