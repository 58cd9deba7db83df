#pragma once
// Schedules made by list scheduling: whenever a device is free it starts the first work, by
// priority, whose inputs have arrived; it never waits for better work. Backwards come first, then
// recomputes, then forwards. Within a kind the micro-batch that is furthest on its way comes first:
// the deepest stage of the forwards, the shallowest of the backwards; in a stage the lowest
// micro-batch.
//   hanayo  wave placement, W = chunks / 2 waves; full backwards (Liu et al. 2023). It decides by
//           problem.times and the hop; without times by F = 1 and B = 2 everywhere.
//   varuna  linear; a stage runs R(i), its forward again, once the stage after it ran B(i), then
//   its
//           own B(i); the last stage needs no R. It decides by slots: every work takes one, a
//           message none (Athlur et al. 2022, the static order).
// Neither limits the micro-batches in flight. Both throw InfeasibleError when a limit is given, and
// when the chunks are not those of the schedule.

#include "planner/orders/device_order.h"

namespace frazil {

DeviceOrders make_hanayo_order(const OrderProblem& problem);
DeviceOrders make_varuna_order(const OrderProblem& problem);

}  // namespace frazil
