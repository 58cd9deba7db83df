#pragma once
// Finds the fastest walks through the segments of a training: of one plan that is held throughout,
// and of any plans, each with the cheapest caches that it can have. Times are those of
// timed_walk.h; a step is simulated only while its walk can still be the fastest.

#include <cstdint>
#include <vector>

#include "planner/reproduce/own_plans/own_training.h"
#include "planner/trajectory/walk_times.h"

namespace frazil {

struct HeldPlanChoice {
  std::vector<HeldSegment> walk;
  Duration time{0};        // of the walk, without the start
  std::int64_t plans = 0;  // that it was chosen from: the space of fixed_space.h
};

// Returns the fastest walk that holds one plan, of the space or of `known`, the first of equally
// fast ones. Throws InfeasibleError if no plan fits under every mask.
HeldPlanChoice hold_best(const OwnTraining& training, const std::vector<ForecastSegment>& segments,
                         const std::vector<Plan>& known);

// Returns the fastest walk through these plans. Throws InfeasibleError if none takes `most` or
// less.
std::vector<HeldSegment> walk_best(const OwnTraining& training,
                                   const std::vector<ForecastSegment>& segments,
                                   const std::vector<Plan>& plans, Duration most);

}  // namespace frazil
