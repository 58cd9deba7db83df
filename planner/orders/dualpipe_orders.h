#pragma once
// DualPipeV and DualPipe overlap forwards of one chunk with backwards of another chunk, in one rule
// of eight steps. A device r of p works on two chunks, 0 and 1, with m micro-batches each; F0, B0,
// I0 / F1, B1, I1 are the next forward, backward (whole, or input half) on chunk 0 / 1, W is the
// oldest weight half still owed by an I, and F0&B1 is an overlapped pair:
//   1. 2(p-1-r) x F0
//   2. r+1      x (F0 F1)
//   3. p-1-r    x (I1 W F1)
//   4. m-2p+r+1 x (F0&B1 F1&B0); on the last device the very first F0 B1 is not overlapped
//   5. p-1-r    x (B1 F1&B0)
//   6. r+1      x (B1 B0), I instead of B from the middle on: the backwards from number r+1 on
//   7. p-1-r    x (W I0)
//   8. r+1      x W
// DualPipeV (wave placement, v = 2): chunk 0 is stage r, chunk 1 stage 2p-1-r.
// DualPipe (both-ways placement, v = 1 per direction): the two halves of the devices mirror each
// other, so the rule runs with p/2 for p, min(r, p-1-r) for r and m/2 for m; chunk 0 is direction 0
// on the first half of the devices and direction 1 on the second. Micro-batches count from 0 in
// each direction.
//
// A device holds at most 2p+1 chunk-micro-batches (DualPipeV) or p+1 (DualPipe, whose chunks are
// whole stages).
// With c = 0, equal devices (tF, tB, tW: one device's share of one micro-batch; T their sum) and
// pairs that take as long as their halves, makespan and span are both
//   DualPipe  m T + (p/2-1) (T + tB - 2 tW)      exact if tF = tB and tW <= tF
//   DualPipeV m T + (p-1) (T + tB - 2 tW) / 2    under the same conditions
// Source: DeepSeek-V3 Technical Report (arXiv 2412.19437) and the bubble table of DeepSeek's
// DualPipe, (PP/2-1)(F&B + B - 3W); PyTorch's DualPipeV schedule; the conditions by simulation.

#include "planner/orders/device_order.h"

namespace frazil {

// Throws InfeasibleError unless v = 2, m >= 2p, and no in-flight depth is asked for.
DeviceOrders make_dualpipe_v_order(const OrderProblem& problem);
// Throws InfeasibleError unless v = 1, p and m are even, m >= 2p, and no in-flight depth is asked
// for.
DeviceOrders make_dualpipe_order(const OrderProblem& problem);

}  // namespace frazil
