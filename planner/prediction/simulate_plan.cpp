#include "planner/prediction/simulate_plan.h"

#include <utility>
#include <variant>

#include "planner/actions/schedule_check.h"
#include "planner/schedules/make_schedule.h"

namespace frazil {

SimulatedStep simulate_step(const Plan& plan, const ModelProfile& profile, const Cluster& cluster,
                            const StepOptions& options) {
  return simulate_step(plan, find_activity(profile, plan), profile, cluster, options);
}

SimulatedStep simulate_step(const Plan& plan, const Activity& activity, const ModelProfile& profile,
                            const Cluster& cluster, const StepOptions& options) {
  const auto devices = static_cast<int>(cluster.devices.size());
  const PlanCosts costs{profile, cluster};
  const Schedule compute = make_schedule(plan, devices, &costs);
  if (std::holds_alternative<ExplicitSchedule>(plan.schedule)) {
    validate_schedule(compute, plan, activity, "plan");
  }
  const Schedule completed = complete_schedule(compute, plan, profile, activity, options.clip);
  LoweredStep lowered =
      lower(plan, completed, profile, cluster, activity, {.overlap = options.overlap});
  Simulation simulation = simulate(lowered.graph, profile, cluster, lowered.actions);
  return {std::move(lowered), std::move(simulation)};
}

PlanSimulation summarize(const SimulatedStep& step, int devices) {
  const auto& [lowered, simulation] = step;
  return {.timeline = make_timeline(lowered.graph, simulation, lowered.actions, devices),
          .makespan = simulation.makespan,
          .memory = simulation.memory,
          .extrapolated = simulation.extrapolated};
}

PlanSimulation simulate_plan(const Plan& plan, const ModelProfile& profile, const Cluster& cluster,
                             const StepOptions& options) {
  return summarize(simulate_step(plan, profile, cluster, options),
                   static_cast<int>(cluster.devices.size()));
}

}  // namespace frazil
