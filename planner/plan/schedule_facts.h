#pragma once
// The facts of every schedule that has a name, one row each: what it is called, where its stages
// lie, what it takes, and what is known of its lists before they are made. Whoever asks which
// schedule does what asks these rows; only generators tell schedules apart by their names.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "planner/plan/placement.h"

namespace frazil {

// In menu order.
enum class ScheduleKind {
  kGpipe,
  kOneForwardOneBackward,
  kEagerOneForwardOneBackward,
  kInterleaved,
  kLoopedBfs,
  kZbH1,
  kZbH2,
  kZb1p,
  kZb2p,
  kZbV,
  kVHalf,
  kVMin,
  kInterleavedZb,
  kDualPipe,
  kDualPipeV,
  kChimera,
  kBitPipe,
  kHanayo,
  kTwoBp,
  kPipeDream,
  kPipeDream2Bw,
  kVaruna
};

// Which weights a micro-batch reads where updates fall among backwards: those of the step (kSync),
// its own copy (kStash, PipeDream), one of two (kTwoBuffered, PipeDream-2BW), the newest, or a
// forecast of them. The last two are not interpreted now.
enum class WeightVersions { kSync, kStash, kTwoBuffered, kLatest, kPredicted };

// What lower bounds may rest on, whatever the times of the stages.
// clang-format off
//   kNone           nothing
//   kTwoPhases      each device runs all its forwards before its first backward
//   kFalling        linear; K on stage 0, fewer downstream (warm_up in planner/orders/linear_orders.h), until B
//   kLevel          linear; K on each stage, until W
//   kLevelInHalves  linear; K on each stage, of which half is free after I (zb-1p and zb-2p, as their authors count)
//   kWeightsLast    F and I as in 1f1b, then all W
// clang-format on
enum class BoundClass : std::uint8_t {
  kNone,
  kTwoPhases,
  kFalling,
  kLevel,
  kLevelInHalves,
  kWeightsLast
};

// K = per_device x p + more micro-batches in flight.
struct OwnInFlight {
  int per_device = 1;
  int more = 0;
  int on(int devices) const { return per_device * devices + more; }
  friend bool operator==(const OwnInFlight&, const OwnInFlight&) = default;
};

struct ScheduleFacts {
  enum class Chunks : std::uint8_t { kFixed, kAny, kEven };

  ScheduleKind kind = ScheduleKind::kGpipe;
  std::string_view name;      // in files and flags
  std::string_view one_line;  // for people
  Placement placement = Placement::kLinear;
  int chunks = 1;  // v per direction, where nothing else is said
  Chunks legal = Chunks::kFixed;
  bool takes_in_flight = false;      // K can be chosen
  OwnInFlight own_in_flight = {};    // K where none is chosen; read only where one can be
  bool splits_backward = false;      // some backwards come as I and W
  bool needs_costs = false;          // its order depends on the times of the stages
  bool recomputes_itself = false;    // every stage but the last recomputes, and the lists say when
  bool takes_shared_stages = false;  // stages may lie on several devices
  WeightVersions versions = WeightVersions::kSync;
  BoundClass bounds = BoundClass::kNone;
};

// Whether planner/prediction/linear_bounds.h knows what each stage holds in flight.
bool has_linear_bounds(const ScheduleFacts& facts);
// Whether each stage holds as many micro-batches until their W: what an order search keeps to.
bool holds_level(const ScheduleFacts& facts);

// In menu order.
std::span<const ScheduleFacts> all_schedules();
const ScheduleFacts& facts_of(ScheduleKind kind);
// Those that update once, at the end of a step.
std::vector<ScheduleKind> synchronous_schedules();

std::string_view schedule_name(ScheduleKind kind);  // "gpipe", "1f1b", "zb-h1", ...
std::optional<ScheduleKind> find_schedule(std::string_view name);
// A line for each schedule, or for each synchronous one: its name and what it is.
std::string describe_schedules(bool synchronous_alone = false);

}  // namespace frazil
