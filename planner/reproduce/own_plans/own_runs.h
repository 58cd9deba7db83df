#pragma once
// Finds how this project would run a training: under the best plan while nothing freezes, under the
// best plan that is held throughout, and under the trajectory of planner/trajectory. Plans are
// compared as timed_walk.h times them.

#include <string>

#include "planner/reproduce/own_plans/timed_walk.h"

namespace frazil {

struct OwnRun {
  std::string plans;  // "1 x 16 1f1b"; several, joined by arrows, if plans change
  int transitions = 0;
  TimeParts parts;
};

struct OwnRuns {
  OwnRun unfrozen;  // one plan, and every layer trains to the end
  OwnRun fixed;     // one plan; layers freeze, and it caches what lies in its first stages
  OwnRun elastic;   // any plans, any caches
};

// Plans the training. Throws InfeasibleError if some mask has no plan that fits.
OwnRuns plan_own_runs(const OwnTraining& training);
// Returns the elastic run alone.
OwnRun plan_elastic(const OwnTraining& training);

}  // namespace frazil
