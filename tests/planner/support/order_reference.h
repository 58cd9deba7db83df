#pragma once
// An independent reference for device orders follows the published rules of the schedules, without
// the task graph: each device runs its list in order; work starts when the device is free and its
// inputs have arrived; a message between different devices takes `hop` and nothing else. A pair
// waits for the inputs of both halves and delivers both at its end. R waits for the F of its own
// stage, and I or B for an R that stands before it.

#include <cstdint>
#include <string>
#include <vector>

#include "planner/orders/device_order.h"
#include "planner/plan/placement.h"

namespace frazil {

struct ReferenceTimes {
  std::int64_t makespan = 0;
  std::int64_t span = 0;  // the longest of a device, first start to last end
  // The most chunk-micro-batches held along the lists: +1 at F, -1 at W or B (F before B in a
  // pair).
  std::vector<int> peak_chunks;  // by device
  // The same count in halves: +2 at F, -1 at I, -1 at W, -2 at B.
  std::vector<int> peak_half_chunks;
};

// Times the orders with `problem.times` by stage for both directions. Throws std::runtime_error
// that names the first work of each stuck device on a deadlock, or work that is missing, doubled or
// on a wrong device.
ReferenceTimes time_orders(const DeviceOrders& orders, const OrderProblem& problem,
                           Placement placement);

// Returns the peak of the device that holds most.
int most(const std::vector<int>& peaks);

// Draws a line per device, "d0: 0F0 0F1 (0F2;1B0) '3F0 ..", where ' marks direction 1 and a pair
// has parentheses.
std::string draw_orders(const DeviceOrders& orders);

// Returns the first work that does not take the micro-batches 0, 1, .. of its kind, stage and
// direction in turn, or nothing.
std::string find_out_of_turn(const DeviceOrders& orders);

}  // namespace frazil
