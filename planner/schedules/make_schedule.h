#pragma once
// Makes the compute schedule of a plan. The generators (planner/orders/*_orders.h; the schedules
// are listed in planner/plan/schedule_facts.h) see numbers; make_schedule() gives their lists the
// names of a plan.

#include "planner/actions/schedule.h"
#include "planner/plan/plan.h"
#include "profiles/cluster.h"
#include "profiles/model_profile.h"

namespace frazil {

// The input, besides the plan, of the schedules that decide by cost.
struct PlanCosts {
  const ModelProfile& profile;
  const Cluster& cluster;
};

// Returns the compute schedule of a plan over `devices` devices: each pipeline's lists,
// concatenated per device in pipeline order. A schedule that runs both ways takes pipelines two by
// two. Stages on several devices use planner/orders/shared_orders.h. A stage that recomputes gets
// an R before each backward, unless the schedule places R itself. A dispatch policy needs costs
// (planner/schedules/dispatch.h). Throws InfeasibleError naming a schedule, placement, axis, memory
// policy or version rule that does not fit or is not interpreted.
Schedule make_schedule(const Plan& plan, int devices, const PlanCosts* costs = nullptr);

}  // namespace frazil
