#pragma once
// ZB-V in an order made for given costs (zb-v-auto), as its authors' scheduler makes it: the wave
// placement with two chunks per device, backwards split into I (dgrad) and W (wgrad), and at most p
// micro-batches (2p chunk-micro-batches) held on a device from F to W. zb-v is the same schedule in
// a fixed order (planner/orders/wave_orders.h).
//
// One sweep makes an order. F and I follow a pattern that knows nearly no costs:
// clang-format off
//   filling  micro-batch 0 goes down the V and up again; while a device waits for it to come back,
//            it and the devices before it run as many more F of chunk 0 as fit into the wait
//   evening  from device 1 on, F of chunk 0 and of chunk 1 take turns until no device has run fewer
//            F than the device before it, and all have run more of chunk 1
//   rounds   2m times each device runs one I, of chunk 0 as soon as the micro-batch is on its way
//            back up, else of chunk 1; and then one F if any is left, of chunk 1 if it can
// clang-format on
// W goes by cost, the longest owed first: one that ends before the input of the next F or I arrives
// runs at once; one that ends later runs if waiting for that input would make the device's span the
// longest of all so far. A device that held 2p runs W before an F. Sweeps differ in whether W may
// delay an F, and an I of chunk 1. Each is made again with the idle times of the sweep before as
// what a device may idle anyway, while this makes the longest span shorter.
//
// Of these orders and zb-v's the one whose longest device span is shortest is taken; ties go to the
// shorter makespan, then to zb-v's. So no span is longer than zb-v's; with fewer than 2p-1
// micro-batches, of which zb-v's order is cut out, it is far shorter. The search ends early if span
// and makespan are the least that any order has.
// Source: Qi et al., Zero Bubble Pipeline Parallelism (arXiv 2401.10241), section 6, and its
// authors' scheduler, whose devices are equal. Here stages may differ: spans are compared, not idle
// times.

#include "planner/orders/device_order.h"

namespace frazil {

// Throws InfeasibleError unless v = 2 and no in-flight depth is asked for, and if problem.times is
// empty or adds up past 2^57 ns over all micro-batches.
DeviceOrders make_zb_v_auto_order(const OrderProblem& problem);

}  // namespace frazil
