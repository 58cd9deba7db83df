#pragma once
// What the planner predicts of a run of an arm, whatever its seed. An ablation shows it beside what
// was measured, and estimates by it how long it will take.

#include <map>

#include "analysis/ablation/arm.h"
#include "profiles/units.h"

namespace frazil {

struct PredictedRun {
  Duration total{0};       // steps and transitions, as PairResult::wall
  Duration device{0};      // sum over plans of time x devices that the plan uses
  int transitions = 0;     // from plan to plan
  Duration transition{0};  // of these
  Duration filling{0};     // what filling the cache adds to steps
};

using PredictedRuns = std::map<Arm, PredictedRun>;  // arms without a prediction are not there

}  // namespace frazil
