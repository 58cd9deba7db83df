#pragma once
// Chimera and BitPipe run the model both ways over the same devices, so that one direction fills
// the bubbles of the opposite one. Both follow one rule of unit slots, where an F or B of a chunk
// takes one slot. With S = p v stages, micro-batches go in units of p, p/2 in each direction;
// micro-batch i of unit u has
//   F of stage s in slot  2S u + 2i + s
//   B of stage s in slot  2S u + 2i + 2S-1-s
// and a device runs its work by slot. For even p no two works of a device have one slot: a unit
// takes 2S slots of a device, all different modulo 2S, so that units interlock. The first forwards
// of a unit go between the last backwards of the unit before (the middle is merged), and no slot
// between the filling of the first unit and the draining of the last one is free. Micro-batches
// count from 0 in each direction, through all units.
//   Chimera  v = 1, both-ways placement
//   BitPipe  v = 2 per direction, wave-both-ways placement
//
// With c = 0 and equal devices (tF, tB: one device's share of one micro-batch, tB whole), makespan
// and span are
//   m (tF+tB) + (p-2)/v (max(tF, tB) + (m/p - 1) |tF - tB|)
// Units in plain concatenation would take m/p (p (tF+tB) + (p-2)/v max(tF, tB)): merging saves
// (m/p - 1) (p-2)/v min(tF, tB). By simulation, merging is never slower with c > 0 or unequal
// stages either. Device r holds at most (v - 1/2) p + 1 + min(r, p-1-r) chunk-micro-batches.
//
// Source: Li and Hoefler, Chimera (arXiv 2107.06925), units in plain concatenation; Wu et al.,
// BitPipe (arXiv 2410.19367). The closed form holds their bubbles for tB = tF and tB = 2 tF and was
// found by simulation.

#include "planner/orders/device_order.h"

namespace frazil {

// Both throw InfeasibleError unless p is even, m a multiple of p, v = 1 or v = 2 per direction, and
// no in-flight depth is asked for.
DeviceOrders make_chimera_order(const OrderProblem& problem);
DeviceOrders make_bitpipe_order(const OrderProblem& problem);

}  // namespace frazil
