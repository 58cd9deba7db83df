#pragma once
// Zero-bubble schedules that are made for given costs (zb-1p, zb-2p; Qi et al. 2024): linear
// placement, backwards split into I (dgrad) and W (wgrad), at most K = problem.in_flight
// micro-batches held on a device, as ActivationRelease counts. zb-1p and zb-2p are two values of K:
// p and 2p unless a value is given.
//
// The generator tries a fixed list of variants, each in one sweep over time, and keeps the order
// whose longest device span is shortest; ties go to the shorter makespan, then to the first in the
// list. The first two variants are closed forms with K and with K - 1, so that no span is longer
// than that of ZB-H1 (K = p) or ZB-H2 (K = 2p - 1). In every other variant each device decides by
// cost what to do next, with about as many micro-batches in flight as hide its round trip, and W
// for the gaps. The search ends early if the lower bounds on span and makespan are both reached.

#include <cstdint>

#include "planner/orders/device_order.h"

namespace frazil {

// How long a device holds a micro-batch from its F on: all of it until W, or one half until I and
// one half until W (the accounting that zero-bubble schedulers are usually measured with).
enum class ActivationRelease : std::uint8_t { kAllAtWeight, kHalfAtInput };

// Throws InfeasibleError if problem.times is empty or adds up past 2^57 ns over all micro-batches,
// and if there is more than one chunk per device. Requires: problem.in_flight is set and at
// least 1.
DeviceOrders make_zero_bubble_order(const OrderProblem& problem,
                                    ActivationRelease release = ActivationRelease::kAllAtWeight);

}  // namespace frazil
