#include "planner/bounds/order_table.h"

#include "planner/orders/make_orders.h"

namespace frazil {

const DeviceOrders& OrderTable::find(ScheduleKind kind, const OrderProblem& problem) {
  const Key key{kind, problem.devices, problem.chunks, problem.micro_batches,
                problem.in_flight.value_or(0)};
  const auto known = orders_.find(key);
  if (known != orders_.end()) return known->second;
  return orders_.emplace(key, make_orders(kind, problem)).first->second;
}

}  // namespace frazil
