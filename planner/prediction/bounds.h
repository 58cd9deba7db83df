#pragma once
// Lower bounds on a plan's makespan and span, with their names. A stage has F, R if it recomputes,
// I (dgrad) and W (wgrad), or B, fused, where the gradient leaves after both, and an update U; a
// hop is transfer and latency. Heads and tails are longest paths of one micro-batch over the DAG of
// stages; a head is at least the step overhead of its device. Waits for collectives are left out.
// These bounds hold whatever the placement and the order on each device:
//   busiest-device   (backwards fused) makespan >= head + work of the device + max(U, tail), where
//                    tail is what must follow its last B: the B of stages before, their U; span >=
//                    step overhead + work + U
//   general-floor    (some backward split, or a dispatch policy: its W may come last) like
//                    busiest-device without tail
//   gradient-chain   (some backward split) makespan >= head + F, R and I of the device + tail after
//                    its last I: its W and U, or the I of stages before
//   one-micro-batch  makespan >= the longest path of one micro-batch
// A device of a stage on several devices has the micro-batches whose turn it is, and a path is that
// of the micro-batches that meet one list of devices. A pair of an F and a backward counts as one
// after the other. A stage without backward is followed by the F of its readers. A commit round
// (planner/plan/commit_round.h) comes on top of the bound on the makespan: all updates wait for it,
// and it for all else.
//
// The schedules gpipe, 1f1b, eager-1f1b, zb-h1, zb-h2, zb-1p, zb-2p and 2bp also have the bounds
// device-warm-up-cool-down and gradient-chain of planner/prediction/linear_bounds.h, with the
// micro-batches in flight of the schedule, for pipelines with one device per stage.

#include <string>

#include "planner/plan/plan.h"
#include "profiles/setting.h"

namespace frazil {

struct LowerBound {
  Duration time{0};
  std::string name;
};

struct PlanBounds {
  LowerBound makespan;
  LowerBound span;  // on the largest per-device span
};

// Returns the largest bound on the makespan and the largest on the span; the first in the order
// above if several are equal. Throws as find_activity() (planner/plan/activity.h) and price()
// (sim/cost_model.h) do. Requires: a plan that passes validate().
PlanBounds find_bounds(const Plan& plan, Setting setting);

}  // namespace frazil
