// Measures whole plans per second, 32 micro-batches on 8 devices, or on 4 with two chunks each:
// everything from the plan to its times and its memory over time, and the sweep alone with new
// costs.

#include <benchmark/benchmark.h>

#include "planner/lowering/lower.h"
#include "planner/schedules/make_schedule.h"
#include "planner/what_if/what_if.h"
#include "sim/cost_model.h"

namespace frazil {
namespace {

WhatIfInputs make_inputs(ScheduleKind kind, int devices) {
  WhatIf what_if;
  what_if.stages = devices;
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

void generate_lower_simulate(benchmark::State& state, ScheduleKind kind, int devices) {
  const WhatIfInputs inputs = make_inputs(kind, devices);
  std::size_t tasks = 0;
  for (auto _ : state) {
    const SimulatedStep step = simulate_what_if(inputs);
    tasks = step.lowered.graph.size();
    benchmark::DoNotOptimize(step.simulation.makespan);
  }
  count_plans(state, tasks);
}

void evaluate_with_new_costs(benchmark::State& state, ScheduleKind kind, int devices) {
  const WhatIfInputs inputs = make_inputs(kind, devices);
  const SimulatedStep step = simulate_what_if(inputs);
  const CompiledGraph compiled = compile(step.lowered.graph);
  Prices prices = price_all(step.lowered.graph, {inputs.profile, inputs.cluster});
  SweepTimes times;
  std::int64_t round = 0;
  for (auto _ : state) {
    for (Duration& price : prices.of_work) price += Duration{(++round & 1) == 0 ? 1 : -1};
    evaluate(compiled, prices.of_work, times);
    benchmark::DoNotOptimize(latest_end(times));
  }
  count_plans(state, step.lowered.graph.size());
}

BENCHMARK_CAPTURE(generate_lower_simulate, 1f1b, ScheduleKind::kOneForwardOneBackward, 8);
BENCHMARK_CAPTURE(generate_lower_simulate, zb_h1, ScheduleKind::kZbH1, 8);
BENCHMARK_CAPTURE(generate_lower_simulate, dualpipe, ScheduleKind::kDualPipe, 8);
BENCHMARK_CAPTURE(generate_lower_simulate, interleaved_on_4, ScheduleKind::kInterleaved, 4);
BENCHMARK_CAPTURE(generate_lower_simulate, zb_v_on_4, ScheduleKind::kZbV, 4);
BENCHMARK_CAPTURE(generate_lower_simulate, interleaved, ScheduleKind::kInterleaved, 8);
BENCHMARK_CAPTURE(generate_lower_simulate, zb_v, ScheduleKind::kZbV, 8);
BENCHMARK_CAPTURE(evaluate_with_new_costs, 1f1b, ScheduleKind::kOneForwardOneBackward, 8);
BENCHMARK_CAPTURE(evaluate_with_new_costs, zb_v, ScheduleKind::kZbV, 8);

}  // namespace
}  // namespace frazil
