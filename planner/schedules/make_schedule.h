#pragma once
// Makes the compute schedule of a plan. The generators (planner/orders/*_orders.h; the schedules
// are listed in planner/plan/schedule_facts.h) see numbers; make_schedule() gives their lists the
// names of a plan.

#include <optional>

#include "planner/actions/schedule.h"
#include "planner/plan/plan.h"
#include "profiles/setting.h"

namespace frazil {

// Returns the compute schedule of a plan over `devices` devices: each pipeline's lists,
// concatenated per device in pipeline order. A schedule that runs both ways takes pipelines two by
// two. Stages on several devices use planner/orders/shared_orders.h. A stage that recomputes gets
// an R before each backward, unless the schedule places R itself. Schedules that decide by times
// read them from `setting`, and a dispatch policy needs it (planner/schedules/dispatch.h). Throws
// InfeasibleError naming a schedule, placement, axis, memory policy or version rule that does not
// fit or is not interpreted.
Schedule make_schedule(const Plan& plan, int devices,
                       std::optional<Setting> setting = std::nullopt);

}  // namespace frazil
