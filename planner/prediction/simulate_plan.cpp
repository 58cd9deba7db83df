#include "planner/prediction/simulate_plan.h"

#include <utility>
#include <variant>

#include "planner/actions/schedule_check.h"
#include "planner/plan/commit_round.h"
#include "planner/schedules/make_schedule.h"

namespace frazil {

SimulatedStep simulate_step(const Plan& plan, Setting setting, const StepOptions& options) {
  return simulate_step(plan, find_activity(setting.profile(), plan), setting, options);
}

SimulatedStep simulate_step(const Plan& plan, const Activity& activity, Setting setting,
                            const StepOptions& options) {
  const auto devices = static_cast<int>(setting.cluster().devices.size());
  const Schedule compute = make_schedule(plan, devices, setting);
  if (std::holds_alternative<ExplicitSchedule>(plan.schedule)) {
    validate_schedule(compute, plan, activity, "plan");
  }
  const bool commits =
      options.commit_round && find_commit_round(plan, setting.cluster()).has_value();
  const Schedule completed =
      complete_schedule(compute, plan, setting.profile(), activity, options.clip || commits);
  LoweredStep lowered = lower(plan, completed, setting, activity, {.overlap = options.overlap});
  Simulation simulation = simulate(lowered.graph, setting, lowered.actions);
  return {std::move(lowered), std::move(simulation)};
}

PlanSimulation summarize(const SimulatedStep& step, int devices) {
  const auto& [lowered, simulation] = step;
  return {.timeline = make_timeline(lowered.graph, simulation, lowered.actions, devices),
          .makespan = simulation.makespan,
          .memory = simulation.memory,
          .extrapolated = simulation.extrapolated};
}

PlanSimulation simulate_plan(const Plan& plan, Setting setting, const StepOptions& options) {
  return summarize(simulate_step(plan, setting, options),
                   static_cast<int>(setting.cluster().devices.size()));
}

}  // namespace frazil
