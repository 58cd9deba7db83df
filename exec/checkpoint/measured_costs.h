#pragma once
// What a run that watches its costs has found them to be (exec/train/drift/drift_control.h), as its
// checkpoints keep it: a run that goes on prices by it, and holds the plan that it held.

#include <cstdint>
#include <string>

#include "profiles/cost_scales.h"
#include "profiles/setting.h"

namespace frazil {

struct MeasuredCosts {
  CostScales scales;
  std::uint64_t beside = 0;  // hash_costs() of the setting that the scales are beside
  // JSON: the plan that the run holds until the next mask; empty: it follows a course
  // (exec/train/plans/plan_course.h), which says that.
  std::string plan = {};
  friend bool operator==(const MeasuredCosts&, const MeasuredCosts&) = default;
};

// Returns XXH64 over all that scales multiply: the times of the layers and the time_ppm of the
// devices. Scales say nothing beside other ones.
std::uint64_t hash_costs(Setting setting);

}  // namespace frazil
