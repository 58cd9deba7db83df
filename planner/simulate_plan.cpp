#include <utility>
#include <variant>

#include "planner/lower.h"
#include "planner/schedule_check.h"
#include "planner/schedules.h"

namespace frazil {

PlanSimulation simulate_plan(const Plan& plan, const ModelProfile& profile, const Cluster& cluster,
                             bool clip) {
  const Activity activity = find_activity(profile, plan.mask);
  const auto devices = static_cast<int>(cluster.devices.size());
  const PlanCosts costs{profile, cluster};
  const Schedule compute = make_schedule(plan, devices, &costs);
  if (std::holds_alternative<ExplicitSchedule>(plan.schedule)) {
    validate_schedule(compute, plan, activity, "plan");
  }
  const Schedule completed = complete_schedule(compute, plan, profile, activity, clip);
  const LoweredStep step = lower(plan, completed, profile, cluster, activity);
  Simulation simulation = simulate(step.graph, profile, cluster, step.actions);
  return {.timeline = make_timeline(step.graph, simulation, step.actions, devices),
          .makespan = simulation.makespan,
          .memory = std::move(simulation.memory),
          .extrapolated = simulation.extrapolated};
}

}  // namespace frazil
