#pragma once
// What the control arms of an ablation train. A control freezes as many blocks at every step as
// the freeze policy did in arm `all`, but others, so that the number alone is the same; or it stops
// after so many steps that it takes the time of `all` (arm_run.h). All of it is a pure function of
// what `all` did and of a seed, so that a prediction and a run have the same masks.
// clang-format off
//   reversed   the last blocks before the head freeze first, the embedding last
//   drawn      blocks freeze in an order that the seed draws; the head is not drawn
// clang-format on
// The order does not change while an arm trains: under the same number of frozen blocks a control
// has the same mask, and where the policy freezes more, what was frozen stays so.

#include <cstdint>
#include <string_view>
#include <vector>

#include "analysis/ablation/arm.h"
#include "planner/trajectory/plan_trajectory.h"
#include "profiles/units.h"
#include "traces/freeze_trace.h"

namespace frazil {

// Returns the mask of a control in place of the policy's: with as many frozen blocks, of which the
// head (planner/freezing/run_shape.h) is none, nor what follows it. kPolicy keeps the mask, kNone
// freezes nothing. The seed is that of kDrawn. Requires: in `policy` these are active.
FreezeMask make_control_mask(const FreezeMask& policy, BlockId head, ArmFacts::Masks masks,
                             std::uint64_t seed);

// Returns the segments under the masks of an arm, at the costs of the policy's. Neighbours differ
// again: segments whose masks have become equal are one, if their costs are.
std::vector<ForecastSegment> make_control_segments(const std::vector<ForecastSegment>& policy,
                                                   BlockId head, ArmFacts::Masks masks,
                                                   std::uint64_t seed);

// Returns the mask events of a trace with the masks of an arm in place of the policy's, each at its
// step; `by` names the arm in each. Events of other kinds are left out. What the policy says of its
// reason is replaced by how many blocks it froze.
std::vector<FreezeEvent> make_control_events(const FreezeTrace& policy, BlockId head,
                                             ArmFacts::Masks masks, std::uint64_t seed,
                                             std::string_view by);

}  // namespace frazil
