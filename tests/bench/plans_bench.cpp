// Whole plans per second, 8 stages x 32 micro-batches: everything from the plan to its times and
// its memory over time, and the sweep alone with new costs.

#include <benchmark/benchmark.h>

#include "planner/lower.h"
#include "planner/schedules.h"
#include "planner/what_if.h"
#include "sim/cost_model.h"

namespace frazil {
namespace {

WhatIfInputs make_inputs(ScheduleKind kind) {
  WhatIf what_if;
  what_if.stages = 8;
  what_if.micro_batches = 32;
  what_if.schedule = kind;
  what_if.forward = {Duration{1'855'000}};
  what_if.backward_input = {Duration{1'807'000}};
  what_if.backward_weight = {Duration{928'000}};
  what_if.hop = Duration{31'000};
  return make_what_if(what_if);
}

void count_plans(benchmark::State& state, std::size_t tasks) {
  state.counters["plans"] = benchmark::Counter(1, benchmark::Counter::kIsIterationInvariantRate);
  state.counters["tasks"] = static_cast<double>(tasks);
}

void generate_lower_simulate(benchmark::State& state, ScheduleKind kind) {
  const WhatIfInputs inputs = make_inputs(kind);
  std::size_t tasks = 0;
  for (auto _ : state) {
    const SimulatedStep step = simulate_what_if(inputs);
    tasks = step.lowered.graph.size();
    benchmark::DoNotOptimize(step.simulation.makespan);
  }
  count_plans(state, tasks);
}

void evaluate_with_new_costs(benchmark::State& state, ScheduleKind kind) {
  const WhatIfInputs inputs = make_inputs(kind);
  const SimulatedStep step = simulate_what_if(inputs);
  const CompiledGraph compiled = compile(step.lowered.graph);
  Prices prices = price_all(step.lowered.graph, inputs.profile, inputs.cluster);
  SweepTimes times;
  std::int64_t round = 0;
  for (auto _ : state) {
    for (Duration& price : prices.of_work) price += Duration{(++round & 1) == 0 ? 1 : -1};
    evaluate(compiled, prices.of_work, times);
    benchmark::DoNotOptimize(latest_end(times));
  }
  count_plans(state, step.lowered.graph.size());
}

BENCHMARK_CAPTURE(generate_lower_simulate, 1f1b, ScheduleKind::kOneForwardOneBackward);
BENCHMARK_CAPTURE(generate_lower_simulate, zb_h1, ScheduleKind::kZbH1);
BENCHMARK_CAPTURE(generate_lower_simulate, interleaved, ScheduleKind::kInterleaved);
BENCHMARK_CAPTURE(generate_lower_simulate, zb_v, ScheduleKind::kZbV);
BENCHMARK_CAPTURE(generate_lower_simulate, dualpipe, ScheduleKind::kDualPipe);
BENCHMARK_CAPTURE(evaluate_with_new_costs, 1f1b, ScheduleKind::kOneForwardOneBackward);
BENCHMARK_CAPTURE(evaluate_with_new_costs, zb_v, ScheduleKind::kZbV);

}  // namespace
}  // namespace frazil
