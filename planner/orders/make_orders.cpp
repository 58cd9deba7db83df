#include "planner/orders/make_orders.h"

#include "planner/orders/dualpipe_orders.h"
#include "planner/orders/greedy_orders.h"
#include "planner/orders/linear_orders.h"
#include "planner/orders/looped_orders.h"
#include "planner/orders/pattern_orders.h"
#include "planner/orders/slot_orders.h"
#include "planner/orders/wave_orders.h"
#include "planner/orders/zero_bubble_orders.h"
#include "planner/orders/zero_bubble_v_orders.h"
#include "planner/plan/schedule_facts.h"

namespace frazil {
namespace {

// zb-1p and zb-2p count what a device holds as their authors do: half of a micro-batch is free
// after I.
constexpr ActivationRelease kReleased = ActivationRelease::kHalfAtInput;

OrderProblem with_in_flight(const OrderProblem& problem, int by_default) {
  OrderProblem resolved = problem;
  resolved.in_flight = problem.in_flight.value_or(by_default);
  return resolved;
}

}  // namespace

DeviceOrders make_orders(ScheduleKind kind, const OrderProblem& problem) {
  const int p = problem.devices;
  const int own = facts_of(kind).own_in_flight.on(p);
  switch (kind) {
    case ScheduleKind::kGpipe:
    case ScheduleKind::kLoopedBfs:
      return make_gpipe_order(problem);
    case ScheduleKind::kOneForwardOneBackward:
    case ScheduleKind::kEagerOneForwardOneBackward:
      return make_one_forward_one_backward_order(problem, own);
    case ScheduleKind::kInterleaved:
      return make_interleaved_order(problem, p);
    case ScheduleKind::kZbH1:
    case ScheduleKind::kZbH2:
      return make_split_linear_order(problem, own);
    case ScheduleKind::kZb1p:
    case ScheduleKind::kZb2p:
      return make_zero_bubble_order(with_in_flight(problem, own), kReleased);
    case ScheduleKind::kZbV:
      return make_zb_v_order(problem);
    case ScheduleKind::kZbVAuto:
      return make_zb_v_auto_order(problem);
    case ScheduleKind::kVHalf:
      return make_v_half_order(problem);
    case ScheduleKind::kVMin:
      return make_v_min_order(problem);
    case ScheduleKind::kInterleavedZb:
      return make_interleaved_zb_order(problem, p);
    case ScheduleKind::kDualPipe:
      return make_dualpipe_order(problem);
    case ScheduleKind::kDualPipeV:
      return make_dualpipe_v_order(problem);
    case ScheduleKind::kChimera:
      return make_chimera_order(problem);
    case ScheduleKind::kBitPipe:
      return make_bitpipe_order(problem);
    case ScheduleKind::kHanayo:
      return make_hanayo_order(problem);
    case ScheduleKind::kTwoBp:
      return make_two_bp_order(make_one_forward_one_backward_order(problem, own));
    case ScheduleKind::kPipeDream:
      return make_pipedream_order(problem, 1);
    case ScheduleKind::kPipeDream2Bw:
      return make_pipedream_order(problem, p);
    case ScheduleKind::kVaruna:
      return make_varuna_order(problem);
  }
  return {};
}

}  // namespace frazil
