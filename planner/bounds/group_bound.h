#pragma once
// clang-format off
// A lower bound on the time of a step when the cuts of a group are known. Each device takes at
// least what one micro-batch must meet before (head), all its own work, and what must follow: the B
// (or I) of the stages before and their updates (tail), or its own reduction and update
// (planner/bounds/group_loads.h). The bound is the largest of
//   busiest-device            backwards fused: head + work + max(tail, reduction + update)
//   general-floor             backwards split, W may come last: head + work + reduction + update
//   gradient-chain            backwards split: head + F, R and I + tail of I
//   device-warm-up-cool-down  linear schedules, if each boundary from the first stage with a
//     and gradient-chain      backward (2bp: with an I) on carries: for each of these stages head +
//                             its span by planner/prediction/linear_bounds.h with K in flight
//                             (gpipe: all) + reduction + update; for 2bp its span of F and I alone
//                             + all W + reduction + update
//   messages                  a device sends one message at a time: the end of its first F + all
//                             its messages + what its last message still has before it
//   two-phases                gpipe, looped-bfs (no B of a device before its last F): until the
//                             last stage's device has its last F, the most over the devices of
//                             head + F + what one micro-batch still has before it; then for each
//                             device the B of one micro-batch in the later stages + its own B and
//                             R, less its longest R, + max(tail, ..) as above
// Groups that run both ways have the first three bounds alone. Reductions of a device's stages run
// one after the other, and each is followed by its update. Reductions count nothing if the search
// overlaps them with backwards.
// clang-format on

#include "planner/bounds/group_loads.h"

namespace frazil {

// Returns the largest of these bounds with its name; a time of zero if the group has no whole
// micro-batch. Requires: the loads are those of the variant's placement, chunks, recomputing and
// backwards.
NamedBound bound_group(const ShapeVariant& variant, const GroupLoads& loads);

}  // namespace frazil
