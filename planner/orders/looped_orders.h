#pragma once
// The looped family: stage s lies on device s mod p, v chunks per device. The micro-batches pass in
// groups: one group passes through chunk 0, then through chunk 1, .. chunk v-1, then the next group
// does. Backwards pass in the same sequence with chunk v-1-c for chunk c. A rule merges these two
// sequences into a device's list: some forwards first, then a backward and a forward in turn, then
// the backwards that are left. With g the size of the first group, on device r:
//
//   schedule         forwards first             backward  W after    groups of
//   looped-bfs       all                        B                    m  (Lamy-Poirier 2022)
//   interleaved      (v-1)g + 2(p-1-r) + 1      B                    p  (Narayanan et al. 2021)
//   interleaved-zb   (v-1)g + (p-1-r) + 1       I, W      r more I   p  (PyTorch's)
//
// looped-bfs is make_gpipe_order (planner/orders/linear_orders.h), which needs v chunks and nothing
// else. At v = 1 interleaved is eager-1f1b and interleaved-zb is zb-h1.
//
// On equal stages, for m >= p, with T = F + I + W the times of one device's share of a micro-batch:
// interleaved and looped-bfs take m T + (p-1)T/v, interleaved-zb m T + (p-1)max(F, I, F+I-W)/v.
// Hops of length c add 2(vp-1)c to interleaved while p > 1 divides m and v c <= min(F, I+W), and
// 2(p-1)c to looped-bfs while p v c <= (m-p)min(F, I+W). The tests check each on random times.

#include <optional>
#include <vector>

#include "planner/orders/device_order.h"

namespace frazil {

struct DeviceRule {
  int forwards_first = 1;  // before the first backward; all, if there are fewer
  // None makes fused backwards, B. A number n makes an I, and the W of this I after n more I.
  std::optional<int> weight_lag;
};

// Makes the lists with `groups` >= 1 groups of micro-batches, of sizes as even as can be, longer
// ones first. 0 micro-batches make empty lists. Requires: one rule per device, and rules that do
// not make devices wait for each other.
DeviceOrders make_looped_orders(const OrderProblem& problem, int groups,
                                const std::vector<DeviceRule>& rules);

// Make groups of `group` >= 1 micro-batches, p unless a caller has a reason. If `group` does not
// divide m, all groups are evened out to no fewer than p micro-batches each, for a short last group
// can deadlock: there are min(ceil(m/group), floor(m/p)) groups. A group that is the only one may
// be shorter. Both throw InfeasibleError if group < p and group < m.
DeviceOrders make_interleaved_order(const OrderProblem& problem, int group);
DeviceOrders make_interleaved_zb_order(const OrderProblem& problem, int group);

}  // namespace frazil
