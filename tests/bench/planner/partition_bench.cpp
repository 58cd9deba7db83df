// Measures the time of an exact partition of 1,000 random layers into 64 stages.

#include <benchmark/benchmark.h>

#include <random>

#include "planner/partition/partition.h"

namespace {

frazil::ChainCosts make_costs(bool unequal_devices) {
  std::mt19937_64 random(1);
  std::uniform_int_distribution<std::int64_t> time(100'000, 5'000'000);
  std::uniform_int_distribution<std::int64_t> slowdown(700'000, 1'500'000);
  frazil::ChainCosts costs;
  for (int i = 0; i < 1000; ++i) costs.layer.emplace_back(time(random));
  for (int i = 0; i + 1 < 1000; ++i) costs.boundary.emplace_back(time(random) / 2);
  for (int s = 0; s < 64; ++s) {
    costs.time_ppm.push_back(unequal_devices ? slowdown(random) : 1'000'000);
  }
  return costs;
}

void partition_1000_layers_into_64_stages(benchmark::State& state) {
  const frazil::ChainCosts costs = make_costs(state.range(0) == 1);
  for (auto _ : state) {
    benchmark::DoNotOptimize(frazil::partition_into(costs, 64));
  }
}
BENCHMARK(partition_1000_layers_into_64_stages)
    ->ArgName("unequal_devices")
    ->Arg(0)
    ->Arg(1)
    ->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
