#include "planner/prediction/simulate_plan.h"

#include <string>
#include <utility>
#include <variant>

#include "planner/actions/schedule_check.h"
#include "planner/lowering/step_copies.h"
#include "planner/plan/commit_round.h"
#include "planner/schedules/make_schedule.h"
#include "profiles/error.h"

namespace frazil {
namespace {

constexpr std::size_t kMostTasks = 8'000'000;

PlanSimulation summarize(const LoweredStep& lowered, const Simulation& simulation, int devices,
                         int steps) {
  return {.timeline = make_timeline(lowered.graph, simulation, lowered.actions, devices),
          .makespan = simulation.makespan,
          .step_time = simulation.makespan / steps,
          .steps = steps,
          .memory = simulation.memory,
          .extrapolated = simulation.extrapolated};
}

}  // namespace

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

StepMeetings find_step_meetings(const Plan& plan, Setting setting, const StepOptions& options) {
  const Cluster& cluster = setting.cluster();
  return {
      .clips = options.clip,
      .commits = find_commit_round(plan, cluster).has_value() || ends_with_a_process(plan, cluster),
      .caches = find_activity(setting.profile(), plan).cached > 0};
}

int count_window(const Plan& plan, Setting setting, const StepOptions& options) {
  if (plan.steps_ahead == 0) return 1;
  if (plan.versions != WeightVersions::kSync) {
    throw InfeasibleError(
        "a plan with weight versions has no steps ahead: its steps flow into each other already");
  }
  return steps_of_window(plan, find_step_meetings(plan, setting, options));
}

PlanSimulation summarize(const SimulatedStep& step, int devices) {
  return summarize(step.lowered, step.simulation, devices, 1);
}

PlanSimulation simulate_window(const SimulatedStep& step, int steps, Setting setting) {
  const auto devices = static_cast<int>(setting.cluster().devices.size());
  if (steps == 1) return summarize(step, devices);
  const std::size_t tasks = step.lowered.graph.size() * static_cast<std::size_t>(steps);
  if (tasks > kMostTasks) {
    throw InfeasibleError("a window of " + std::to_string(steps) + " steps has " +
                          std::to_string(tasks) + " tasks, more than the " +
                          std::to_string(kMostTasks) + " that are simulated at once");
  }
  const LoweredStep window = repeat_steps(step.lowered, steps);
  return summarize(window, simulate(window.graph, setting, window.actions), devices, steps);
}

PlanSimulation simulate_plan(const Plan& plan, Setting setting, const StepOptions& options) {
  return simulate_window(simulate_step(plan, setting, options),
                         count_window(plan, setting, options), setting);
}

}  // namespace frazil
