#include "planner/bounds/variant_memory.h"

#include <algorithm>

#include "planner/orders/linear_orders.h"
#include "planner/plan/schedule_facts.h"
#include "profiles/error.h"

namespace frazil {

Placement placement_of(const ShapeVariant& variant) { return facts_of(variant.schedule).placement; }

ScheduleKind example_of(Placement placement) {
  const auto schedules = all_schedules();
  const auto first = std::find_if(schedules.begin(), schedules.end(),
                                  [&](const auto& facts) { return facts.placement == placement; });
  ENSURE(first != schedules.end(), "a placement of some schedule");
  return first->kind;
}

int stages_per_device(const ShapeVariant& variant) {
  return variant.chunks * directions(placement_of(variant));
}

bool recomputes(const ShapeVariant& variant, int stage, int stages) {
  if (facts_of(variant.schedule).recomputes_itself) return stage + 1 < stages;
  return variant.recompute;
}

std::optional<int> known_in_flight(const ShapeVariant& variant, int share, int stages, int stage) {
  const ScheduleFacts& facts = facts_of(variant.schedule);
  if (!has_linear_bounds(facts)) return std::nullopt;
  const int depth = variant.in_flight.value_or(facts.own_in_flight.on(stages));
  switch (facts.bounds) {
    case BoundClass::kTwoPhases:
      return share;
    case BoundClass::kFalling:
      return std::min(share, warm_up(depth, stages, stage));
    case BoundClass::kLevel:
      return std::min(share, depth);
    case BoundClass::kLevelInHalves:
    case BoundClass::kWeightsLast:
    case BoundClass::kNone:
      return std::nullopt;
  }
  return std::nullopt;
}

int most_in_flight(const ShapeVariant& variant, int share, int stages, int stage) {
  return known_in_flight(variant, share, stages, stage).value_or(share);
}

}  // namespace frazil
