#pragma once
// The facts of every named schedule, one row each: its name, where its stages lie, which parameters
// it takes, and what is known of its lists before they are made. All code that asks what a schedule
// does reads these rows; planner/orders/make_orders.cpp alone tells schedules apart by
// ScheduleKind. Below, p devices of a pipeline have v chunks each (placement.h); F, B, I and W are
// actions (planner/orders/device_order.h). A micro-batch is in flight on a stage from its F until
// the stage gives its memory back. "Linear" means stage s alone on device s.

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "planner/plan/placement.h"
#include "planner/plan/schedule_kind.h"

namespace frazil {

// The property of a schedule that lower bounds may rest on, whatever the times of the stages. K is
// the number of micro-batches in flight.
// clang-format off
//   kNone           nothing
//   kTwoPhases      each device runs all its forwards before its first backward
//   kFalling        linear; K on stage 0, fewer downstream, until B (warm_up in
//                   planner/orders/linear_orders.h)
//   kLevel          linear; K on each stage, until W
//   kLevelInHalves  linear; K on each stage, of which half is free after I (zb-1p and zb-2p, as
//                   their authors count)
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
  // Which v a plan may choose: the row's own, any, or the row's own and all even numbers.
  enum class Chunks : std::uint8_t { kFixed, kAny, kEven };

  ScheduleKind kind = ScheduleKind::kGpipe;
  std::string_view name;                         // in files and flags
  std::array<std::string_view, 2> aliases = {};  // names in other programs, taken for input alone
  std::string_view one_line;                     // for people
  Placement placement = Placement::kLinear;
  int chunks = 1;  // v per direction, if a plan does not choose
  Chunks legal = Chunks::kFixed;
  bool takes_in_flight = false;      // K can be chosen
  OwnInFlight own_in_flight = {};    // K if none is chosen; no meaning without takes_in_flight
  bool splits_backward = false;      // some backwards come as I and W
  bool needs_costs = false;          // its order depends on the times of the stages
  bool recomputes_itself = false;    // every stage but the last recomputes, and the lists say when
  bool takes_shared_stages = false;  // stages may lie on several devices
  bool takes_any_placement = false;  // with v = 1 any number of stages may lie on a device
  WeightVersions versions = WeightVersions::kSync;
  BoundClass bounds = BoundClass::kNone;
};

// True if planner/prediction/linear_bounds.h knows what each stage holds in flight.
bool has_linear_bounds(const ScheduleFacts& facts);
// True for kLevel and kLevelInHalves: K is the same on every stage.
bool holds_level(const ScheduleFacts& facts);

// Returns the rows in menu order.
std::span<const ScheduleFacts> all_schedules();
const ScheduleFacts& facts_of(ScheduleKind kind);
// Returns the schedules that update once, at the end of a step (synchronous, flushing schedules).
std::vector<ScheduleKind> synchronous_schedules();
std::string_view schedule_name(ScheduleKind kind);  // "gpipe", "1f1b", "zb-h1", ...
// Finds a schedule by its name or an alias, in any case; none if no schedule has this name.
std::optional<ScheduleKind> find_schedule(std::string_view name);
// Returns all names that find_schedule takes, to suggest one for a misspelt name.
std::vector<std::string_view> all_schedule_names();
// Returns one line per schedule, or per synchronous schedule: its name and what it is.
std::string describe_schedules(bool synchronous_alone = false);

}  // namespace frazil
