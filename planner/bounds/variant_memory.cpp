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

Bytes stash_in_flight(const ChainSums& sums, LayerSpan span, const InFlight& in_flight) {
  const Bytes until_input = sums.stash_until_input(span);
  return (sums.stash(span) - until_input) * in_flight.until_weight +
         until_input * in_flight.until_input;
}

std::optional<InFlight> known_in_flight(const ShapeVariant& variant, int share, int stages,
                                        int stage) {
  const ScheduleFacts& facts = facts_of(variant.schedule);
  if (!has_linear_bounds(facts)) return std::nullopt;
  const int depth = variant.in_flight.value_or(facts.own_in_flight.on(stages));
  const auto at_most_all = [share](int count) { return std::min(share, count); };
  switch (facts.bounds) {
    case BoundClass::kTwoPhases:
      return InFlight{share, share};
    case BoundClass::kFalling: {
      const int first = at_most_all(warm_up(depth, stages, stage));
      return InFlight{first, first};
    }
    case BoundClass::kLevel:
      // The K-th F starts when as many I as there were F beyond the first ones have ended, and no W
      // has.
      return InFlight{at_most_all(depth), at_most_all(warm_up(depth, stages, stage))};
    case BoundClass::kLevelInHalves:
    case BoundClass::kWeightsLast:
    case BoundClass::kNone:
      return std::nullopt;
  }
  return std::nullopt;
}

InFlight most_in_flight(const ShapeVariant& variant, int share, int stages, int stage) {
  return known_in_flight(variant, share, stages, stage).value_or(InFlight{share, share});
}

}  // namespace frazil
