#pragma once
// V-Half and V-Min run two chunks per device on the wave placement, with the backward split, and
// repeat one building block of unit slots: the block of a micro-batch begins 6 slots after that of
// the micro-batch before. The block bounds how long a chunk stays in memory, from its F to its W,
// and so what a device holds. Slots on device i:
//            F chunk 0   F chunk 1   I chunk 1   I chunk 0
//   V-Half   2i          3p-2-i      3p+q-1+2i   6p+q-2-i     q = 3 if p is even, else 0
//   V-Min    i           2p-1-i      2p+q+i      4p+q-1-i     q = 2 if 3 divides p, else 0
// The lists are made from the repeated blocks as published:
//   1. every W goes into the first free slot after its I (chunk 1 before chunk 0);
//   2. in order of slots, work moves into the first free slot between what it needs and where it
//      is, unless a device then holds more than the one that held most. From the first I of chunk 0
//      on device 0 to its last F of chunk 0 the pattern is steady and stays. All work then starts
//      as early as it can in this order, taking one slot each;
//   3. the W's are taken out, the work after the steady part moves as in 2., and the W's go into
//   the
//      slots that stay free, as in 1.
// If the last F of chunk 0 comes before the first I of chunk 0 (m small), nothing is steady and 2.
// moves all work. The orders depend on p and m only.
//
// The next lines give the most that a device holds, in chunk-micro-batches, and the idle time
// (makespan - m T; tF, tB, tW: one device's share of one micro-batch, T their sum) at
// tF = tB = tW, c = 0 (hop length); both for m >= p >= 3:
//   V-Half   2 floor((p+2)/2)   (3p-7) T/6, (3p-4) T/6 if p is odd
//   V-Min    2 floor((p+4)/3)   (4p-5) T/6, (4p-7) T/6 if 3 divides p
// With c = 0 a further micro-batch takes V-Half just T if and only if tW+2tB >= 2tF and tW+2tF >=
// 2tB; V-Min may pay a bubble for each one even then.
// Source: Qi et al., Pipeline Parallelism with Controllable Memory (arXiv 2405.15362): building
// blocks, memory, V-Half's condition; the reordering as its authors' scheduler does it; the idle
// times by simulation.

#include "planner/orders/device_order.h"

namespace frazil {

// Both throw InfeasibleError unless v = 2 and no in-flight depth is asked for.
DeviceOrders make_v_half_order(const OrderProblem& problem);
DeviceOrders make_v_min_order(const OrderProblem& problem);

}  // namespace frazil
