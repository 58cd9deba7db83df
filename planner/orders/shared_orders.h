#pragma once
// The linear family over stages on several devices, which take the micro-batches in turn:
// micro-batch i of a stage with d devices runs on its device i mod d (PipeDream's 1F1B-RR;
// Narayanan et al. 2019). If all devices of a stage work on every micro-batch, each on its slice,
// they count as one device and run one list. With d_s devices at stage s, D_s at s and all later
// stages, and A_s = D_s - d_s at the later stages, a device of stage s starts with w_s forwards, or
// with all that it has:
//
//   schedule     w_s                   backward  W after
//   gpipe        all                   B
//   1f1b         ceil(D_s / d_s)       B
//   eager-1f1b   1 + ceil(2A_s / d_s)  B
//   zb-h1        ceil(D_s / d_s)       I, W      ceil(D_0 / d_s) - w_s more I
//
// The rows follow from a schedule's facts: its bound class, its own K with A_0 + 1 for p, and
// whether it splits its backward.
//
// If K, the micro-batches in flight on a device of the first stage, is given, w_s is
// 1 + ceil((K-1)d_0 A_s / (A_0 d_s)), or K if there is one stage, and W comes after
// ceil(K d_0 / d_s) - w_s more I. ceil(D_s / d_s) is PipeDream's number of active micro-batches.
// Lists do not wait for each other while (w_t - 1) d_t < w_s d_s for all stages s < t: stage s then
// hands on everything that stage t needs before a backward, before s waits for that backward. This
// condition holds without K; with a small K, w_t is cut down until it holds. With one device per
// stage these are the orders of planner/orders/linear_orders.h.

#include <vector>

#include "planner/orders/device_order.h"
#include "planner/plan/schedule_kind.h"

namespace frazil {

// The devices of a stage, numbered 0..p-1, and whether each has a slice of every micro-batch.
struct StagePlaces {
  std::vector<int> devices;
  bool is_sliced = false;
};

// Makes the lists of shared stages; reads devices, micro_batches and in_flight of the problem.
// Requires: the schedule takes shared stages; no device has two stages, except for gpipe, which
// takes any placement and runs forwards in the order of stages, backwards against it.
DeviceOrders make_shared_orders(ScheduleKind kind, const OrderProblem& problem,
                                const std::vector<StagePlaces>& stages);

}  // namespace frazil
