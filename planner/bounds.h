#pragma once
// Lower bounds on a plan's time, whatever the order of actions on each device, with their names.
// Stage times tF, tB (all backward work of the stage), hop c (transfer and latency), update tU, m
// micro-batches of the pipeline. For a chain of stages 0..p-1, one per device:
//   busiest-device   makespan >= head_s + m (tF + tB) + max(tU, tail_s), where
//                    head_s = sum over stages before s of (tF + c), at least s's step overhead
//                    tail_s = what must follow its last B: hops, tB of stages before s, their tU
//                    span >= step overhead + m (tF + tB) + tU
//   one-micro-batch  makespan >= all F + all B + 2 (p-1) c of one micro-batch
// For a DAG of stages, heads and tails are longest paths; a stage without backward is followed by
// the F of its readers. Waits for collectives are left out. (Head and tail as in the zero-bubble
// analysis, Qi et al. 2024.)

#include <string>

#include "planner/plan.h"

namespace frazil {

struct LowerBound {
  Duration time{0};
  std::string name;
};

struct PlanBounds {
  LowerBound makespan;
  LowerBound span;  // on the largest per-device span
};

PlanBounds find_bounds(const Plan& plan, const ModelProfile& profile, const Cluster& cluster);

}  // namespace frazil
