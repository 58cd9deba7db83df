#pragma once
// Makes the lists of a schedule by its name; each schedule has one generator (*_orders.h).

#include "planner/orders/device_order.h"
#include "planner/plan/schedule_kind.h"

namespace frazil {

// Makes the lists of the pipelines that one run of the generator serves, one per direction. Throws
// InfeasibleError if p, v or m breaks a condition of the schedule, or if the schedule needs times
// that are not known.
DeviceOrders make_orders(ScheduleKind kind, const OrderProblem& problem);

}  // namespace frazil
