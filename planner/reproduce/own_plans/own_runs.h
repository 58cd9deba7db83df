#pragma once
// Finds how this project would run a training: under the best plan while nothing freezes, under the
// best plan that is held throughout, and under the best walk through several plans. Plans that are
// held throughout are those of fixed_space.h and the candidates of planner/trajectory. The walk
// goes through these candidates and the two held plans. All are chosen by the times of
// timed_walk.h, those by which they are compared; planner/trajectory would take one ring of
// all-reduces at a time.

#include <cstdint>
#include <string>

#include "planner/reproduce/own_plans/timed_walk.h"

namespace frazil {

// Candidates of the trajectory: the best plans under each mask, and as many that cache its prefix.
inline constexpr int kPlansPerMask = 3;

struct OwnRun {
  std::string plans;  // "1 x 16 1f1b"; several, joined by arrows, if plans change
  int transitions = 0;
  TimeParts parts;
  std::int64_t of_plans = 0;  // fixed plans that this one was chosen from; 0: plans may change
};

struct OwnRuns {
  OwnRun unfrozen;  // one plan, and every layer trains to the end
  OwnRun fixed;     // one plan; layers freeze, and it caches what lies in its first stages
  OwnRun elastic;   // the best walk, with any caches
};

// Plans the training. Throws InfeasibleError if some mask has no plan that fits.
OwnRuns plan_own_runs(const OwnTraining& training);

}  // namespace frazil
