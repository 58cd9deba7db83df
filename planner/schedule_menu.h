#pragma once
// The menu of schedules: the only list of what can be made, where its stages lie, what it takes.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "planner/device_order.h"
#include "planner/placement.h"
#include "planner/plan.h"

namespace frazil {

struct ScheduleFamily {
  enum class Chunks : std::uint8_t { kFixed, kAny, kEven };

  ScheduleKind kind = ScheduleKind::kGpipe;
  Placement placement = Placement::kLinear;
  int chunks = 1;  // v per direction, where nothing else is said
  Chunks legal = Chunks::kFixed;
  bool takes_in_flight = false;
  bool needs_costs = false;  // decides by the times of the stages
  WeightVersions versions = WeightVersions::kSync;
  std::string_view one_line;
};

// In menu order.
std::span<const ScheduleFamily> schedule_families();
const ScheduleFamily& family_of(ScheduleKind kind);
// A line for each, or for each that keeps one version of the weights: its name and what it is.
std::string describe_schedules(bool synchronous_alone = false);

// The lists of one group of pipelines, one per direction. Throws InfeasibleError where the schedule
// has a condition that p, v or m breaks, or needs times that are not known.
DeviceOrders make_orders(ScheduleKind kind, const OrderProblem& problem);

}  // namespace frazil
