#pragma once
// Makes a schedule by a dispatch policy instead of lists: each device takes, among the actions that
// could start, the one that the policy prefers, and takes an F only when its stash finds room
// within the device's memory. Run on the expected times, a policy yields a schedule with lists like
// any other schedule.
//   fifo      the action that could start first
//   priority  backwards before forwards, then lower micro-batches first
//   lrtf      the action with the longest remaining time: the longest path of compute and messages
//             to the end of the step (Hu 1961, Operations Research 9(6): highest level first)
// Ties go by pipeline, kind (forward first), stage and micro-batch, in ascending order.

#include "planner/actions/schedule.h"
#include "planner/schedules/make_schedule.h"
#include "profiles/setting.h"

namespace frazil {

// Returns a compute schedule. Requires: plan.schedule is a DispatchPolicy. Throws InfeasibleError
// for steal, which is not interpreted, for weight versions other than sync, and, naming the action
// that waits, if the policy fills the memory so that nothing can go on.
Schedule dispatch(const Plan& plan, int devices, Setting setting);

}  // namespace frazil
