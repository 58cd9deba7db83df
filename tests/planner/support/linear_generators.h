#pragma once
// Names the schedules of the linear family, each with its own number of micro-batches in flight.

#include "planner/orders/linear_orders.h"

namespace frazil {

inline DeviceOrders one_forward_one_backward(const OrderProblem& problem) {
  return make_one_forward_one_backward_order(problem, problem.devices);
}
inline DeviceOrders eager(const OrderProblem& problem) {
  return make_one_forward_one_backward_order(problem, 2 * problem.devices - 1);
}
inline DeviceOrders zb_h1(const OrderProblem& problem) {
  return make_split_linear_order(problem, problem.devices);
}
inline DeviceOrders zb_h2(const OrderProblem& problem) {
  return make_split_linear_order(problem, 2 * problem.devices - 1);
}
inline DeviceOrders gpipe(const OrderProblem& problem) { return make_gpipe_order(problem); }
// Makes gpipe, but backwards descend over the micro-batches, as in the paper's picture.
inline DeviceOrders reverse_gpipe(const OrderProblem& problem) {
  DeviceOrders orders = make_gpipe_order(problem);
  for (DeviceOrder& order : orders) {
    for (OrderedWork& work : order) {
      if (work.kind != ActionKind::kBackward) continue;
      work.micro_batch = problem.micro_batches - 1 - work.micro_batch;
    }
  }
  return orders;
}

}  // namespace frazil
