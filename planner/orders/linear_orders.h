#pragma once
// The linear family: stage s lies on device s, one chunk each. It is the looped family at v = 1
// (planner/orders/looped_orders.h). A stage begins with w_s = warm_up(K, p, s) forwards. Where
// backwards are split into I (dgrad) and W (wgrad), every device holds K micro-batches: w_s run
// ahead of their I, and the rest wait for their W.
//
//   schedule       forwards first  backward  W after         K
//   gpipe          m               B                                  (Huang et al. 2019)
//   1f1b           w_s             B                         p        (Narayanan et al. 2019)
//   eager-1f1b     w_s             B                         2p - 1
//   zb-h1          w_s             I, W      K - w_s more I  p        (Qi et al. 2024)
//   zb-h2          w_s             I, W      K - w_s more I  2p - 1   (Qi et al. 2024)
//   2bp            its host's      I, W      all I           its host's (Rae et al. 2024)
//   pipedream      w_s             B, U                      p        (Narayanan et al. 2019, 2021)
//
// On equal stages, with T = F + I + W and hops of length c, the makespans are
//   gpipe        (m+p-1)T + 2(p-1)c
//   1f1b         (m+p-1)T + 2(m+p-3 - floor((m-2)/p))c
//   eager-1f1b   (m+p-1)T + 2(p-1)c                          while 2c <= T
//   zb-h1        m T + (p-1)max(F+3c, I+2c, F+I-W+4c)        for m > p, while 2c <= W
//   zb-h2        m T + (p-1)max(F, I-F, F+I-2W)              for m >= 2p-1, c = 0
//   2bp          (m+p-1)(F+I) + m W                          for c = 0
// zb-h1 with m = p takes up to 2c less. The tests check each on random times.

#include "planner/orders/device_order.h"

namespace frazil {

// Returns how many forwards stage s runs before its first backward: 1 + ceil((K-1)(p-1-s)/(p-1)),
// which falls from K to 1 along the stages; K at p = 1.
int warm_up(int in_flight, int devices, int stage);

// Makes lists of all forwards, then all backwards, micro-batches in the same order. Over v > 1
// chunks in the looped placement this is looped BFS.
DeviceOrders make_gpipe_order(const OrderProblem& problem);

// The next two take K from problem.in_flight, else from `default_in_flight`. They require K >= 1,
// and they and PipeDream require chunks = 1.
DeviceOrders make_one_forward_one_backward_order(const OrderProblem& problem,
                                                 int default_in_flight);
DeviceOrders make_split_linear_order(const OrderProblem& problem, int default_in_flight);

// Makes the host's order with I for each B, and puts all W of a device at its end, in the order of
// their I.
DeviceOrders make_two_bp_order(const DeviceOrders& host);

// Makes 1f1b with K in flight (default p), an update U after every `interval` >= 1 backwards, and
// an update after the last backward; interval 1 is PipeDream, p or more is PipeDream-2BW. U has the
// micro-batch of the B before it.
DeviceOrders make_pipedream_order(const OrderProblem& problem, int interval);

}  // namespace frazil
