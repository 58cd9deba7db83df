#include "planner/schedule_menu.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "planner/dualpipe_orders.h"
#include "planner/greedy_orders.h"
#include "planner/linear_orders.h"
#include "planner/looped_orders.h"
#include "planner/pattern_orders.h"
#include "planner/slot_orders.h"
#include "planner/wave_orders.h"
#include "planner/zero_bubble_orders.h"
#include "profiles/error.h"

namespace frazil {
namespace {

// What zb-1p and zb-2p hold is counted as their authors do: half of a micro-batch is free after I.
constexpr ActivationRelease kReleased = ActivationRelease::kHalfAtInput;

OrderProblem with_in_flight(const OrderProblem& problem, int by_default) {
  OrderProblem resolved = problem;
  resolved.in_flight = problem.in_flight.value_or(by_default);
  return resolved;
}

using Kind = ScheduleKind;
using Chunks = ScheduleFamily::Chunks;

constexpr auto kFamilies = std::to_array<ScheduleFamily>({
    {.kind = Kind::kGpipe, .one_line = "all forwards, then all backwards"},
    {.kind = Kind::kOneForwardOneBackward,
     .takes_in_flight = true,
     .one_line = "a backward as soon as there is one; p micro-batches in flight"},
    {.kind = Kind::kEagerOneForwardOneBackward,
     .takes_in_flight = true,
     .one_line = "1f1b with 2p - 1 micro-batches in flight, which hides transfers"},
    {.kind = Kind::kInterleaved,
     .placement = Placement::kLooped,
     .chunks = 2,
     .legal = Chunks::kAny,
     .one_line = "1f1b over v chunks per device, in groups of p micro-batches: bubble / v"},
    {.kind = Kind::kLoopedBfs,
     .placement = Placement::kLooped,
     .chunks = 2,
     .legal = Chunks::kAny,
     .one_line = "gpipe over v chunks per device, breadth first"},
    {.kind = Kind::kZbH1,
     .takes_in_flight = true,
     .one_line = "split backward in the memory of 1f1b: a third of its bubble"},
    {.kind = Kind::kZbH2,
     .takes_in_flight = true,
     .one_line = "split backward, 2p - 1 in flight: no bubble where updates need no barrier"},
    {.kind = Kind::kZb1p,
     .takes_in_flight = true,
     .needs_costs = true,
     .one_line = "split backward, ordered by the times, p in flight (half of one is free after I)"},
    {.kind = Kind::kZb2p,
     .takes_in_flight = true,
     .needs_costs = true,
     .one_line =
         "split backward, ordered by the times, 2p in flight (half of one is free after I)"},
    {.kind = Kind::kZbV,
     .placement = Placement::kWave,
     .chunks = 2,
     .one_line = "split backward over a V of two chunks per device, p in flight"},
    {.kind = Kind::kVHalf,
     .placement = Placement::kWave,
     .chunks = 2,
     .one_line = "a V with half of 1f1b's activations"},
    {.kind = Kind::kVMin,
     .placement = Placement::kWave,
     .chunks = 2,
     .one_line = "a V with a third of 1f1b's activations"},
    {.kind = Kind::kInterleavedZb,
     .placement = Placement::kLooped,
     .chunks = 2,
     .legal = Chunks::kAny,
     .one_line = "interleaved with split backward"},
    {.kind = Kind::kDualPipe,
     .placement = Placement::kBothWays,
     .one_line = "two pipelines in opposite directions, forwards overlapped with backwards"},
    {.kind = Kind::kDualPipeV,
     .placement = Placement::kWave,
     .chunks = 2,
     .one_line = "dualpipe folded into a V: the parameters once"},
    {.kind = Kind::kChimera,
     .placement = Placement::kBothWays,
     .one_line = "two pipelines in opposite directions, in units of p micro-batches"},
    {.kind = Kind::kBitPipe,
     .placement = Placement::kWaveBothWays,
     .chunks = 2,
     .one_line = "two V pipelines in opposite directions"},
    {.kind = Kind::kHanayo,
     .placement = Placement::kWave,
     .chunks = 2,
     .legal = Chunks::kEven,
     .one_line = "waves over v = 2W chunks per device, backward first"},
    {.kind = Kind::kTwoBp,
     .takes_in_flight = true,
     .one_line = "1f1b with I in place of B and all W at the end"},
    {.kind = Kind::kPipeDream,
     .takes_in_flight = true,
     .versions = WeightVersions::kStash,
     .one_line = "1f1b with an update after every backward; a weight version per micro-batch"},
    {.kind = Kind::kPipeDream2Bw,
     .takes_in_flight = true,
     .versions = WeightVersions::kTwoBuffered,
     .one_line = "1f1b with an update every p micro-batches; two weight versions"},
    {.kind = Kind::kVaruna,
     .one_line = "stage inputs alone are kept; each stage but the last recomputes"},
});

}  // namespace

std::span<const ScheduleFamily> schedule_families() { return kFamilies; }

std::string describe_schedules(bool synchronous_alone) {
  std::string lines;
  for (const ScheduleFamily& family : kFamilies) {
    if (synchronous_alone && family.versions != WeightVersions::kSync) continue;
    lines += fmt::format("{:<17} {}\n", schedule_name(family.kind), family.one_line);
  }
  return lines;
}

const ScheduleFamily& family_of(ScheduleKind kind) {
  const auto family = std::find_if(kFamilies.begin(), kFamilies.end(),
                                   [&](const ScheduleFamily& f) { return f.kind == kind; });
  ENSURE(family != kFamilies.end(), "a schedule that the menu does not list");
  return *family;
}

DeviceOrders make_orders(ScheduleKind kind, const OrderProblem& problem) {
  const int p = problem.devices;
  switch (kind) {
    case ScheduleKind::kGpipe:
    case ScheduleKind::kLoopedBfs:
      return make_gpipe_order(problem, BackwardOrder::kForward);
    case ScheduleKind::kOneForwardOneBackward:
      return make_one_forward_one_backward_order(problem, p);
    case ScheduleKind::kEagerOneForwardOneBackward:
      return make_one_forward_one_backward_order(problem, 2 * p - 1);
    case ScheduleKind::kInterleaved:
      return make_interleaved_order(problem, p);
    case ScheduleKind::kZbH1:
      return make_split_linear_order(problem, p);
    case ScheduleKind::kZbH2:
      return make_split_linear_order(problem, 2 * p - 1);
    case ScheduleKind::kZb1p:
      return make_zero_bubble_order(with_in_flight(problem, p), kReleased);
    case ScheduleKind::kZb2p:
      return make_zero_bubble_order(with_in_flight(problem, 2 * p), kReleased);
    case ScheduleKind::kZbV:
      return make_zb_v_order(problem);
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
      return make_two_bp_order(make_one_forward_one_backward_order(problem, p));
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
