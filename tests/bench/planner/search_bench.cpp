// Measures the CPU time of a whole plan search (all synchronous schedules, every pipeline length,
// replicas equal or not, chunks, depths, recomputation), and of the search again after blocks
// froze.

#include <benchmark/benchmark.h>

#include <string>

#include "planner/bounds/shape.h"
#include "planner/search/search.h"
#include "planner/transitions/replan.h"

namespace frazil {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

// Makes a model of the size of a transformer with 7 to 20 billion parameters, whose first and last
// layers differ from the rest.
ModelProfile make_transformer(int layers) {
  ModelProfile profile;
  profile.model = "transformer";
  for (int i = 0; i < layers; ++i) {
    profile.blocks.push_back("block" + std::to_string(i));
    Layer layer;
    layer.name = "layer" + std::to_string(i);
    layer.block = BlockId{i};
    layer.has_loss = i + 1 == layers;
    const bool is_end = i == 0 || i + 1 == layers;
    layer.parameters = Bytes{is_end ? 260'000'000 : 400'000'000};
    layer.optimizer_state = layer.parameters * 6;
    layer.update = microseconds(900);
    for (const int size : {1, 2, 4, 8, 16}) {
      const int scale = 20 + 100 * size;
      const int share = i == 0 ? 30 : i + 1 == layers ? 140 : 100 + i % 3;
      const auto time = [&](int per_unit) { return microseconds(per_unit * scale * share / 1000); };
      layer.costs.push_back({.micro_batch_size = size,
                             .forward = time(100),
                             .forward_frozen = time(95),
                             .backward_input = time(105),
                             .backward_weight = time(90),
                             .backward_weight_alone = time(92),
                             .stash = Bytes{140'000'000} * size});
    }
    profile.layers.push_back(layer);
    if (i > 0) {
      profile.edges.push_back(
          {LayerId{i - 1}, LayerId{i}, EdgeKind::kGradient, {Bytes{16'777'216}}});
    }
  }
  return profile;
}

Cluster make_hosts(int devices, bool unequal) {
  Cluster cluster = make_uniform_cluster(devices, Bytes{80'000'000'000},
                                         {microseconds(10), BytesPerSecond{25'000'000'000}});
  if (!unequal) return cluster;
  constexpr int kOfHost = 8;
  const Link inside{microseconds(3), BytesPerSecond{300'000'000'000}};
  cluster.hosts.clear();
  for (int d = 0; d < devices; ++d) {
    if (d % kOfHost == 0) {
      cluster.hosts.push_back({"host" + std::to_string(d / kOfHost), Bytes{1'000'000'000'000}});
    }
    cluster.devices[static_cast<std::size_t>(d)].host = HostId{d / kOfHost};
    if (d >= devices / 2) {
      cluster.devices[static_cast<std::size_t>(d)].time_ppm = 1'600'000;
      cluster.devices[static_cast<std::size_t>(d)].memory_limit = Bytes{40'000'000'000};
    }
    for (int other = d / kOfHost * kOfHost; other < std::min(devices, (d / kOfHost + 1) * kOfHost);
         ++other) {
      if (other != d) cluster.links.push_back({DeviceId{d}, DeviceId{other}, inside});
    }
  }
  return cluster;
}

SearchOptions make_options(const ModelProfile& profile, int batch) {
  SearchOptions options;
  options.batch_size = batch;
  options.micro_batch_sizes = measured_sizes(profile, batch);
  options.schedules = synchronous_schedules();
  options.mask = FreezeMask::all_active(static_cast<int>(profile.blocks.size()));
  options.joint = true;
  options.recompute = true;
  return options;
}

void report(benchmark::State& state, const Ranking& ranking) {
  std::int64_t candidates = static_cast<std::int64_t>(ranking.candidates.size());
  for (const RejectedShapes& rejected : ranking.rejected) candidates += rejected.candidates;
  state.counters["candidates"] = static_cast<double>(candidates);
  state.counters["simulated"] = static_cast<double>(ranking.simulated);
  if (ranking.best() == nullptr) return;
  const Candidate& best = *ranking.best();
  const auto ms = [](Duration time) { return static_cast<double>(time.count()) / 1e6; };
  state.counters["makespan_ms"] = ms(best.makespan);
  state.counters["at_least_ms"] = ms(ranking.left ? ranking.left->at_least : best.makespan);
  state.SetLabel(summarize(best.plan));
}

void search_32_layers(benchmark::State& state) {
  const auto devices = static_cast<int>(state.range(0));
  const ModelProfile profile = make_transformer(32);
  const Cluster cluster = make_hosts(devices, state.range(1) == 1);
  SearchOptions options = make_options(profile, 2 * devices);
  // More than 64 unequal devices leave more plans than can be evaluated.
  if (state.range(1) == 1 && devices > 64) options.effort = 100'000;
  Ranking ranking;
  for (auto _ : state) ranking = search_plans({profile, cluster}, options);
  report(state, ranking);
}

// Plans again from the best plan of an all-active model, with 1,000 steps to come. The search
// object has found that plan once, as at the start of a run; the cost of the transition counts in
// the choice.
void plan_again_100_layers(benchmark::State& state) {
  const ModelProfile profile = make_transformer(100);
  const Cluster cluster = make_hosts(64, state.range(0) == 1);
  SearchOptions options = make_options(profile, 256);
  options.micro_batch_sizes = {2};
  SearchOptions again = options;
  again.mask = FreezeMask::frozen_prefix(100, BlockId{static_cast<int>(state.range(1))});
  again.overlapped_cuts = state.range(2) == 1;
  again.gap_ppm = state.range(3);
  HeldState held;
  held.steps = 1000;
  held.trained = options.mask;
  held.overhead = {milliseconds(50), milliseconds(50)};
  std::optional<Replan> next;
  for (auto _ : state) {
    state.PauseTiming();
    PlanSearch search({profile, cluster});
    held.plan = search.search(options).best()->plan;
    state.ResumeTiming();
    next = replan(search, {profile, cluster}, held, again);
  }
  state.counters["makespan_ms"] = static_cast<double>(next->next.makespan.count()) / 1e6;
  state.counters["switch_ms"] = static_cast<double>(next->cost.total.count()) / 1e6;
  const Duration step = next->next.makespan;
  const Duration least = next->left ? std::min(step, next->left->at_least) : step;
  state.counters["at_least_ms"] = static_cast<double>(least.count()) / 1e6;
  state.SetLabel(summarize(next->next.plan));
}

BENCHMARK(search_32_layers)
    ->ArgNames({"devices", "unequal"})
    ->ArgsProduct({{64, 512, 2048}, {0, 1}})
    ->Unit(benchmark::kMillisecond);
BENCHMARK(plan_again_100_layers)
    ->ArgNames({"unequal", "frozen", "overlapped_cuts", "gap_ppm"})
    ->ArgsProduct({{0, 1}, {25, 60}, {0, 1}, {0, 10'000}})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace frazil
