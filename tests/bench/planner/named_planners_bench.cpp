// Measures the time of other systems' planners as implemented here: PipeDream's optimizer on a
// chain of 240 states and 16 machines (as many states as the profile of a ResNet-50 has), Pipe-BD's
// search over 50,388 plans of 8 devices and 13 blocks, torchgpipe's blocks of 1,000 layers on 32
// devices.

#include <benchmark/benchmark.h>

#include <random>
#include <vector>

#include "planner/named/block_partition.h"
#include "planner/named/pipedream.h"
#include "planner/partition/hybrid_distribution.h"

namespace {

void pipedream_240_states_16_machines(benchmark::State& state) {
  std::mt19937_64 random(1);
  std::uniform_int_distribution<std::int64_t> time(100'000, 5'000'000);
  std::uniform_int_distribution<std::int64_t> size(10'000, 200'000'000);
  frazil::OperatorGraph graph;
  for (int i = 0; i < 240; ++i) {
    graph.operators.push_back({frazil::Duration{time(random)}, frazil::Bytes{size(random)},
                               frazil::Bytes{size(random) / 10}});
    if (i > 0) graph.edges.emplace_back(i - 1, i);
  }
  const std::vector<frazil::PipeDreamLevel> levels = {{16, {1'000'000'000}}};
  for (auto _ : state) {
    benchmark::DoNotOptimize(frazil::partition_for_pipedream(graph, levels, false));
  }
}
BENCHMARK(pipedream_240_states_16_machines)->Unit(benchmark::kMillisecond);

void pipe_bd_8_devices_13_blocks(benchmark::State& state) {
  std::mt19937_64 random(1);
  std::uniform_int_distribution<std::int64_t> time(100'000, 5'000'000);
  frazil::HybridCosts costs;
  costs.devices = 8;
  costs.blocks = 13;
  for (int g = 1; g <= costs.devices; ++g) {
    auto& step = costs.step.emplace_back();
    for (int b = 0; b < costs.blocks; ++b) step.emplace_back(time(random) / g);
    costs.reduce.emplace_back(static_cast<std::size_t>(costs.blocks), frazil::Duration{100'000});
  }
  costs.relay.assign(12, frazil::Duration{50'000});
  for (auto _ : state) benchmark::DoNotOptimize(frazil::search_hybrid_plans(costs));
}
BENCHMARK(pipe_bd_8_devices_13_blocks)->Unit(benchmark::kMillisecond);

void torchgpipe_1000_layers_32_blocks(benchmark::State& state) {
  std::mt19937_64 random(1);
  std::lognormal_distribution<double> time(13, 1);
  std::vector<frazil::Duration> costs;
  for (int i = 0; i < 1000; ++i) costs.emplace_back(static_cast<std::int64_t>(time(random)));
  for (auto _ : state) benchmark::DoNotOptimize(frazil::partition_in_blocks(costs, 32));
}
BENCHMARK(torchgpipe_1000_layers_32_blocks)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
