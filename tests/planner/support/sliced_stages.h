#pragma once
// Tells the drawn pipelines with slices from those without.

#include <algorithm>

#include "planner/plan/stage_slices.h"

namespace frazil {

inline bool has_sliced_stage(const Pipeline& pipeline) {
  return std::any_of(pipeline.stages.begin(), pipeline.stages.end(),
                     [](const Stage& stage) { return slices_of(stage) > 1; });
}

}  // namespace frazil
