#pragma once
// Orders over the wave placement (planner/plan/placement.h).
//
// ZB-V runs two chunks per device, with the backward split into I (dgrad) and W (wgrad). Device r
// holds chunk 0 = stage r and chunk 1 = stage 2p-1-r; F0, I0, W0 / F1, I1, W1 are the next
// micro-batch of that kind on chunk 0 / chunk 1. With n = max(2p-1, m) micro-batches:
//   2(p-r)-1 x F0
//   r   x (F1 F0)
//   p-r x (F1 I1 W1)
//   n-p x ([F0 while any is left] I0 W0 F1 I1 W1)
//   r   x (I0 I1)
//   p-r x (I0 W0)
//   r   x W1, r x W0
// and the work of micro-batches m .. n-1 is dropped. The rule looks at no costs: it is the fixed
// order of PyTorch's ZBVZeroBubble. The authors' own order, which looks at them, is made by
// planner/orders/zero_bubble_v_orders.h.
//
// A device holds at most 2p chunk-micro-batches (p micro-batches). With c = 0 (hop length),
// m >= 2p-1 and equal devices (tF, tB, tW: one device's share of one micro-batch; T their sum):
//   span     <= m T + (p-1) max(0, max(tF, tB) - tW)   if tW <= min(tF, tB)
//   makespan  = m T + (p-1) T / 6, span = m T          if tF = tB = tW
// Source: Qi et al., Zero Bubble Pipeline Parallelism (arXiv 2401.10241), section 6; the figures by
// simulation.

#include <string_view>

#include "planner/orders/device_order.h"

namespace frazil {

// Throws InfeasibleError unless v = 2 and no in-flight depth is asked for.
DeviceOrders make_zb_v_order(const OrderProblem& problem);

// Throws as make_zb_v_order() does, in the name of a schedule with the same conditions.
void refuse_what_zb_v_is_not(const OrderProblem& problem, std::string_view name);

}  // namespace frazil
