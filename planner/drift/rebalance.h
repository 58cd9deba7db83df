#pragma once
// Cuts the pipelines of a plan anew over the same devices, in the same order and under the same
// schedule, as DynMo's balancers do (planner/named/dynmo.h): each device keeps one stage of
// consecutive layers, and only where the stages end changes; packing alone releases some. Loads are
// the compute times of the setting for one micro-batch, times the time_ppm of the device; messages
// and memory are left to whoever simulates the plan.

#include <optional>

#include "planner/plan/plan.h"
#include "profiles/setting.h"

namespace frazil {

// True if the plan can be cut anew: a named schedule, every stage is one range of layers on a
// device of its own, and some pipeline has two stages.
bool can_rebalance(const Plan& plan);

// The exact min-max cut over devices of unequal speed (planner/partition/partition.h), which is
// what DynMo's partition balancer ends at on equal ones. Requires: can_rebalance(plan).
Plan rebalance_by_partition(const Plan& plan, Setting setting);
// DynMo's diffusion, until no offer holds: neighbours hand over layers from the cuts in force on.
// Requires: can_rebalance(plan).
Plan rebalance_by_diffusion(const Plan& plan, Setting setting);
// DynMo's packing (pack_stages of planner/named/dynmo.h) over devices of unequal speed, after the
// exact min-max cut: from the front, two neighbouring stages become one where the faster of their
// devices takes no longer for both than the slowest stage takes, and the other device is released.
// Stages of different memory policies stay apart. Returns the cut itself if no two can be one.
// Requires: can_rebalance(plan).
Plan rebalance_by_packing(const Plan& plan, Setting setting);

}  // namespace frazil
