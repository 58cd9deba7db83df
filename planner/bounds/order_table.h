#pragma once
// Orders of work that depend on numbers alone, each made once. The searches of one model after the
// other ask for the same orders again, whatever is frozen.

#include <map>
#include <tuple>

#include "planner/orders/device_order.h"
#include "planner/plan/plan.h"

namespace frazil {

class OrderTable {
 public:
  // Returns the orders of a schedule; the reference stays valid. Throws InfeasibleError if the
  // schedule refuses the numbers. Requires: the schedule looks at no times.
  const DeviceOrders& find(ScheduleKind kind, const OrderProblem& problem);

 private:
  using Key = std::tuple<ScheduleKind, int, int, int, int>;  // p, v, m, K or 0
  std::map<Key, DeviceOrders> orders_;
};

}  // namespace frazil
