#pragma once
// Lists of work that depend on numbers alone, each made once: the searches of one model after the
// other ask for the same again, whatever is frozen.

#include <map>
#include <tuple>

#include "planner/orders/device_order.h"
#include "planner/plan/plan.h"

namespace frazil {

class OrderTable {
 public:
  // Requires: a schedule that looks at no times. Throws InfeasibleError where it refuses the
  // numbers. The reference stays valid.
  const DeviceOrders& find(ScheduleKind kind, const OrderProblem& problem);

 private:
  using Key = std::tuple<ScheduleKind, int, int, int, int>;  // p, v, m, K or 0
  std::map<Key, DeviceOrders> orders_;
};

}  // namespace frazil
