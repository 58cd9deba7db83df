#pragma once
// A dispatch policy instead of lists: each device takes, of the actions that could start, the one
// that its policy prefers, and an F only when its stash finds room within the device's memory. What
// comes of it on the expected times is a schedule like any other, with lists.
//   fifo      the one that could start first
//   priority  backwards before forwards, then lower micro-batches first
//   lrtf      the one with the longest remaining time: the longest path of compute and messages to
//             the end of the step (Hu 1961, Operations Research 9(6): highest level first)
// Ties: pipelines, kinds (forward first), stages, micro-batches in ascending order.

#include "planner/actions/schedule.h"
#include "planner/schedules/make_schedule.h"

namespace frazil {

// Compute lists only. Requires: plan.schedule is a DispatchPolicy. Throws InfeasibleError for
// steal, which is not interpreted yet, for weight versions other than sync, and where the policy
// fills the memory so that nothing can go on, naming the action that waits.
Schedule dispatch(const Plan& plan, int devices, const PlanCosts& costs);

}  // namespace frazil
