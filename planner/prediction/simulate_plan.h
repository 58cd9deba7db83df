#pragma once
// Simulates a step of a plan in one go: make_schedule, complete_schedule, lower, simulate.

#include <optional>
#include <vector>

#include "planner/lowering/lower.h"
#include "planner/plan/activity.h"
#include "planner/plan/plan.h"
#include "profiles/setting.h"
#include "sim/simulate.h"

namespace frazil {

// The graph of a step and its times, which explanations need.
struct SimulatedStep {
  LoweredStep lowered;
  Simulation simulation;
};

struct StepOptions {
  bool clip = false;  // a barrier before updates
  std::optional<ReductionOverlap> overlap = std::nullopt;
  bool commit_round = true;  // before updates, where the step has one; false leaves it out
};

SimulatedStep simulate_step(const Plan& plan, Setting setting, const StepOptions& options = {});
// Simulates a step where layers do what `activity` says, so that fewer layers may be cached than
// the plan allows. Requires: the cached layers lie in the first stage of every pipeline.
SimulatedStep simulate_step(const Plan& plan, const Activity& activity, Setting setting,
                            const StepOptions& options = {});

struct PlanSimulation {
  Timeline timeline;
  Duration makespan{0};
  std::vector<MemoryPeak> memory;  // by device
  bool extrapolated = false;
};

PlanSimulation summarize(const SimulatedStep& step, int devices);
PlanSimulation simulate_plan(const Plan& plan, Setting setting, const StepOptions& options = {});

}  // namespace frazil
