#include "planner/prediction/repeat_steps.h"

#include <utility>

#include "planner/prediction/simulate_plan.h"
#include "sim/cost_model.h"
#include "sim/event_graph.h"
#include "sim/static_engine.h"

namespace frazil {
namespace {

TaskGraph repeat_plan(const Plan& plan, Setting setting, const RepeatOptions& options, int steps) {
  const SimulatedStep step = simulate_step(plan, setting, {.clip = options.barrier});
  return repeat_steps(step.lowered.graph, steps);
}

}  // namespace

Duration find_period(const Plan& plan, Setting setting, const RepeatOptions& options) {
  const auto makespan = [&](int steps) {
    const TaskGraph graph = repeat_plan(plan, setting, options, steps);
    SweepTimes times;
    evaluate(compile(graph), price_all(graph, setting).of_work, times);
    return latest_end(times);
  };
  return (makespan(2 * options.steps) - makespan(options.steps)) / options.steps;
}

Duration find_period_with_jitter(const Plan& plan, Setting setting, const RepeatOptions& options,
                                 const Jitter& jitter) {
  const TaskGraph graph = repeat_plan(plan, setting, options, options.steps);
  EventOptions events;
  events.meetings = find_meetings(graph);
  const EventGraph prepared = prepare_events(graph, std::move(events));
  const Prices prices = price_all(graph, setting);
  return find_spread(draw_makespans(prepared, prices.of_work, jitter)).median / options.steps;
}

}  // namespace frazil
