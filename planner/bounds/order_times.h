#pragma once
// clang-format off
// Lower bounds on the time and the memory of a group when the order of work on each of its devices
// is known: without a plan or a task graph, in one pass over the lists. Work starts when its device
// is free, its F has come down and its gradient up the boundaries between neighbouring stages;
// messages leave a device one after the other. So
//   last work   ends no later than in the simulation, which knows more waits
//   held        parameters, optimizer state, one set of gradients, and the most stash (saved
//               activations) between the F and the B, or I, of a list
// Times are equal to the simulation's where all edges join neighbouring layers. A short micro-batch
// takes nothing and holds nothing, stages that recompute hold no stash, and of two directions only
// the first is counted in what is held.
// clang-format on

#include <vector>

#include "planner/bounds/order_table.h"
#include "planner/bounds/proposal.h"
#include "planner/bounds/space_sums.h"

namespace frazil {

struct OrderTimes {
  // True if the schedule takes these numbers and, as far as it was run, does not deadlock.
  bool known = false;
  std::vector<Duration> last_work;  // by device of the group: its end
  std::vector<Bytes> held;          // likewise
};

// Times the lists `orders` of a group on its devices. Ends as soon as some device surely takes
// longer than `most`; the times of the devices may then be less than they would take.
OrderTimes time_orders(const Shape& shape, const GroupClass& group, const ChainSums& sums,
                       const Cluster& group_cluster, const DeviceOrders& orders,
                       Duration most = kNever);

class OrderTimer {
 public:
  // All must outlive this.
  OrderTimer(const ModelProfile& profile, const DeviceGroupClasses& device_classes,
             const SpaceSums& sums, const SearchOptions& options, OrderTable& orders);

  // Finds the orders of the shape's schedule and times them as time_orders() does; the times are
  // not known if the schedule refuses the numbers.
  OrderTimes time(const Shape& shape, const GroupClass& group, Duration most = kNever);

 private:
  OrderProblem describe(const Shape& shape, const GroupClass& group) const;
  const DeviceOrders& orders_of(const Shape& shape, const GroupClass& group);

  const ModelProfile& profile_;
  const DeviceGroupClasses& device_classes_;
  const SpaceSums& space_sums_;
  const SearchOptions& options_;
  OrderTable& orders_;   // of schedules that look at no times
  DeviceOrders priced_;  // of one that does
};

}  // namespace frazil
