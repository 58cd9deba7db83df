#pragma once
// The generators: plan -> compute schedule, and the check of any compute schedule. One function per
// family; the table below is the only list. S stages p, micro-batches m per pipeline, stage s.
//   gpipe  all F, then all B in forward order of micro-batches
//   1f1b   min(m, w_s) F, then B and F in turn; w_s = min(K, 1 + ceil((K-1)(p-1-s)/(p-1))), w = K
//          at p = 1; default K = p, which gives w_s = p - s (PipeDream-flush, DAPPLE)

#include <string>
#include <string_view>
#include <vector>

#include "planner/activity.h"
#include "planner/plan.h"
#include "planner/schedule.h"

namespace frazil {

struct ScheduleFamily {
  ScheduleKind kind;
  std::string_view one_line;
};
// The families that can be made, in menu order.
const std::vector<ScheduleFamily>& schedule_families();

// The compute schedule of a plan over `devices` devices: each pipeline's lists, concatenated per
// device in pipeline order. Throws InfeasibleError naming a schedule, axis, memory policy or
// version rule that is not interpreted.
Schedule make_schedule(const Plan& plan, int devices);

// Every action belongs to the device, each owned micro-batch has its F once, its backward once
// after it (B, or I then W), on the right device, nothing twice, no action of unknown stages.
// Throws InputError{file, 0}.
void validate_schedule(const Schedule& compute, const Plan& plan, const Activity& activity,
                       const std::string& file);

}  // namespace frazil
