#pragma once
// Zero-bubble schedules that are made for given costs (zb-1p, zb-2p; Qi et al. 2024): linear
// placement, backwards split into I and W, at most K = problem.in_flight micro-batches held on a
// device, as ActivationRelease counts. zb-1p and zb-2p are two values of K: p and 2p unless one is
// given.
//
// Constructive: a fixed list of variants is tried, each one sweep over time, and the order with the
// shortest longest device span is kept; ties by makespan, then by place in the list. The first two
// are closed forms with K and with K - 1, so that no span is longer than that of ZB-H1 (K = p) or
// ZB-H2 (K = 2p - 1). In the others each device decides by cost what to do next, with about as many
// micro-batches in flight as hide its round trip, and W for the gaps. Ends early where lower bounds
// on span and makespan are both reached.

#include <cstdint>

#include "planner/orders/device_order.h"

namespace frazil {

// What a device holds of a micro-batch from F on: all until W, or one half until I and one until W
// (the accounting that zero-bubble schedulers are usually measured with).
enum class ActivationRelease : std::uint8_t { kAllAtWeight, kHalfAtInput };

// Throws InfeasibleError without problem.times, and with more than one chunk per device.
// Requires: problem.in_flight is set and at least 1.
DeviceOrders make_zero_bubble_order(const OrderProblem& problem,
                                    ActivationRelease release = ActivationRelease::kAllAtWeight);

}  // namespace frazil
