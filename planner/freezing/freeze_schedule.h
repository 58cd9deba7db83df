#pragma once
// The policies that read nothing but the step: what they want is a function of configuration, step
// and run shape (which includes the seed).

#include <optional>
#include <string>

#include "planner/freezing/freeze_policy.h"
#include "planner/freezing/run_shape.h"

namespace frazil {

// The mask that a policy asks for.
struct Wanted {
  FreezeMask mask;
  std::string reason;  // one sentence
  friend bool operator==(const Wanted&, const Wanted&) = default;
};

// Returns what the policy wants at `step`; none for a policy that reads signals. Requires: a policy
// paced in steps (in_steps).
std::optional<Wanted> want_by_step(const FreezePolicy& policy, Step step, const RunShape& run);

// Returns the number of blocks, counted from the first, that Composer freezes:
// floor((n - 1) x freeze_level x (progress - freeze_start) / (1 - freeze_start)), and 0 until
// freeze_start. Rounding noise below 1e-9 never lowers the floor. `progress` is the share of the
// run that was over when the current interval began.
int linear_frozen_blocks(const LinearFreeze& policy, double progress, int blocks);

// Returns t_i, the share of the run after which block i of `blocks`, the last of which is the head,
// freezes; 1 for the head.
double freezeout_end(const FreezeOut& policy, BlockId block, int blocks);
// Returns the factor on the block's learning rate at the share `progress` of the run:
// (1 + cos(pi progress / t_i)) / 2, divided by t_i where scaled; 0 after t_i.
double freezeout_rate(const FreezeOut& policy, BlockId block, int blocks, double progress);
// Returns the rule that gives blocks learning rates of their own (FreezeOut, or a trace of it);
// none where all blocks have the run's rate.
std::optional<FreezeOut> find_rates(const FreezePolicy& policy);

}  // namespace frazil
