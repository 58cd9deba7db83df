#pragma once
// What the policies want that read nothing but the step: functions of configuration, step, seed and
// the shape of the run.

#include <optional>
#include <string>

#include "planner/freezing/freeze_policy.h"
#include "planner/freezing/signals.h"

namespace frazil {

// What a policy asks for, and why in one sentence.
struct Wanted {
  FreezeMask mask;
  std::string reason;
  friend bool operator==(const Wanted&, const Wanted&) = default;
};

// None for the policies that read signals. Requires: paced in steps.
std::optional<Wanted> want_by_step(const FreezePolicy& policy, Step step, const RunShape& run);

// Composer: floor((n - 1) x freeze_level x (progress - freeze_start) / (1 - freeze_start)), blocks
// from the first on; 0 until freeze_start. Rounding noise below 1e-9 never lowers the floor.
// progress: the share of the run at the last begin of an interval.
int linear_frozen_blocks(const LinearFreeze& policy, double progress, int blocks);

// t_i, the share of the run after which block i freezes; 1 for the head.
double freezeout_end(const FreezeOut& policy, BlockId block, int blocks);
// What FreezeOut multiplies the block's learning rate with at the share `progress` of the run:
// (1 + cos(pi progress / t_i)) / 2, divided by t_i where scaled; 0 after t_i.
double freezeout_rate(const FreezeOut& policy, BlockId block, int blocks, double progress);
// The rule by which blocks have learning rates of their own; none: all have the run's.
std::optional<FreezeOut> find_rates(const FreezePolicy& policy);

}  // namespace frazil
