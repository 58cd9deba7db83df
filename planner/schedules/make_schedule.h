#pragma once
// Plan -> compute schedule. The generators (*_orders.h, listed in planner/plan/schedule_facts.h)
// see numbers; this gives their lists the names of a plan.

#include "planner/actions/schedule.h"
#include "planner/plan/plan.h"
#include "profiles/cluster.h"
#include "profiles/model_profile.h"

namespace frazil {

// What the schedules that decide by cost need to know besides the plan.
struct PlanCosts {
  const ModelProfile& profile;
  const Cluster& cluster;
};

// The compute schedule of a plan over `devices` devices: each pipeline's lists, concatenated per
// device in pipeline order; a schedule that runs both ways takes pipelines two by two. Stages on
// several devices have planner/orders/shared_orders.h. A stage that
// recomputes gets an R before each backward, where the schedule places none itself. A
// dispatch policy needs costs (planner/schedules/dispatch.h). Throws InfeasibleError naming a
// schedule, placement, axis, memory policy or version rule that does not fit or is not interpreted.
Schedule make_schedule(const Plan& plan, int devices, const PlanCosts* costs = nullptr);

}  // namespace frazil
