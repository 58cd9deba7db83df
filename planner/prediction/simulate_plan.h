#pragma once
// Simulates a step of a plan, or the window of steps that the plan hands out at once
// (planner/plan/step_window.h), in one go: make_schedule, complete_schedule, lower, simulate.

#include <optional>
#include <vector>

#include "planner/lowering/lower.h"
#include "planner/plan/activity.h"
#include "planner/plan/plan.h"
#include "planner/plan/step_window.h"
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

// Simulates one step by itself, whatever the plan says on steps ahead.
SimulatedStep simulate_step(const Plan& plan, Setting setting, const StepOptions& options = {});
// Simulates a step where layers do what `activity` says, so that fewer layers may be cached than
// the plan allows. Requires: the cached layers lie in the first stage of every pipeline.
SimulatedStep simulate_step(const Plan& plan, const Activity& activity, Setting setting,
                            const StepOptions& options = {});

// Returns what devices come to together in the steps of the plan.
StepMeetings find_step_meetings(const Plan& plan, Setting setting, const StepOptions& options = {});
// Returns how many steps of the plan are simulated at once: its window, or 1. Throws
// InfeasibleError for a plan with weight versions and steps ahead.
int count_window(const Plan& plan, Setting setting, const StepOptions& options = {});

// The simulated window: the steps 0, 1, ... of a time line, or one step.
struct PlanSimulation {
  Timeline timeline;
  Duration makespan{0};   // of the window
  Duration step_time{0};  // makespan / steps, rounded down: what a step takes in the long run
  int steps = 1;
  std::vector<MemoryPeak> memory;  // by device
  bool extrapolated = false;
};

// Returns what is simulated of one step by itself.
PlanSimulation summarize(const SimulatedStep& step, int devices);
// Simulates a window of `steps` such steps. Throws InfeasibleError for a window of more than 8
// million tasks.
PlanSimulation simulate_window(const SimulatedStep& step, int steps, Setting setting);
// Simulates the window of the plan. Throws as simulate_step() and simulate_window().
PlanSimulation simulate_plan(const Plan& plan, Setting setting, const StepOptions& options = {});

}  // namespace frazil
