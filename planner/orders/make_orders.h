#pragma once
// From a schedule's name to its lists: one generator (*_orders.h) each.

#include "planner/orders/device_order.h"
#include "planner/plan/schedule_facts.h"

namespace frazil {

// The lists of one group of pipelines, one per direction. Throws InfeasibleError where the schedule
// has a condition that p, v or m breaks, or needs times that are not known.
DeviceOrders make_orders(ScheduleKind kind, const OrderProblem& problem);

}  // namespace frazil
