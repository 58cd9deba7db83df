#pragma once
// What a group takes and holds at least when the order of work on each of its devices is known: no
// plan, no task graph, one pass over the lists. Work starts when its device is free, its F has come
// down and its gradient up the boundaries between neighbouring stages; messages leave a device one
// after the other. So
//   end of the last work of each device  <= that of the simulation: it knows fewer waits
//   held                                 parameters, optimizer state, one set of gradients, and the
//                                        most stash between the F and the B, or I, of a list
// Equal to the simulation where all edges join neighbouring layers. A short micro-batch takes
// nothing and holds nothing, stages that recompute hold no stash, and of two directions the first
// alone is counted in what is held.

#include <vector>

#include "planner/bounds/order_table.h"
#include "planner/bounds/proposal.h"
#include "planner/bounds/space_sums.h"

namespace frazil {

struct OrderTimes {
  bool known =
      false;  // the schedule takes these numbers and, as far as it was run, does not deadlock
  std::vector<Duration> last_work;  // by device of the machine
  std::vector<Bytes> held;          // likewise
};

// Of a group with these cuts on this machine, its lists known. Ends where some device surely takes
// longer than `most`, with less for it than it takes.
OrderTimes time_orders(const Shape& shape, const GroupClass& group, const ChainSums& sums,
                       const Cluster& machine, const DeviceOrders& orders,
                       Duration most = Duration::max());

class OrderTimer {
 public:
  // All must outlive this.
  OrderTimer(const ModelProfile& profile, const DeviceGroupClasses& machines, const SpaceSums& sums,
             const SearchOptions& options, OrderTable& orders);

  // As time_orders(); not known where the schedule refuses the numbers.
  OrderTimes time(const Shape& shape, const GroupClass& group, Duration most = Duration::max());

 private:
  OrderProblem describe(const Shape& shape, const GroupClass& group) const;
  const DeviceOrders& orders_of(const Shape& shape, const GroupClass& group);

  const ModelProfile& profile_;
  const DeviceGroupClasses& machines_;
  const SpaceSums& space_sums_;
  const SearchOptions& options_;
  OrderTable& orders_;   // of schedules that look at no times
  DeviceOrders priced_;  // of one that does
};

}  // namespace frazil
