// Measures the time to plan a trajectory over 100 freeze events on 16 devices: searches,
// simulations under every mask, predicted transitions, the walk, and the rule without a forecast.
// Variants add a store for features, and all schedules.

#include <benchmark/benchmark.h>

#include "planner/bounds/shape.h"
#include "planner/trajectory/plan_trajectory.h"

namespace {

using std::chrono::microseconds;

frazil::ModelProfile make_model(int layers) {
  frazil::ModelProfile profile;
  profile.model = "chain";
  for (int i = 0; i < layers; ++i) {
    profile.blocks.push_back("block" + std::to_string(i));
    frazil::Layer layer;
    layer.name = "layer" + std::to_string(i);
    layer.block = frazil::BlockId{i};
    layer.has_loss = i + 1 == layers;
    layer.parameters = frazil::Bytes{4'000'000};
    layer.optimizer_state = frazil::Bytes{8'000'000};
    layer.update = microseconds{50};
    for (const int size : {1, 64}) {
      const auto time = microseconds{(300 + 11 * (i % 7)) * size};
      layer.costs.push_back({.micro_batch_size = size,
                             .forward = time,
                             .forward_frozen = time,
                             .backward_input = time,
                             .backward_weight = time,
                             .backward_weight_alone = time,
                             .stash = frazil::Bytes{100'000} * size});
    }
    profile.layers.push_back(layer);
    if (i > 0) {
      profile.edges.push_back({frazil::LayerId{i - 1},
                               frazil::LayerId{i},
                               frazil::EdgeKind::kGradient,
                               {frazil::Bytes{50'000}}});
    }
  }
  return profile;
}

constexpr int kEvents = 100;

// Plans a run in which one more block freezes every 1,000 steps.
void plan_over_100_freeze_events(benchmark::State& state, const frazil::ModelProfile& profile,
                                 frazil::TrajectoryOptions options) {
  const frazil::Cluster cluster = frazil::make_uniform_cluster(
      16, frazil::Bytes{400'000'000}, {microseconds{10}, frazil::BytesPerSecond{10'000'000'000}});
  std::vector<frazil::ForecastSegment> segments;
  for (int k = 0; k <= kEvents; ++k) {
    segments.push_back(
        {1000 * k, 1000,
         k == 0 ? frazil::FreezeMask::all_active(kEvents + 2)
                : frazil::FreezeMask::frozen_prefix(kEvents + 2, frazil::BlockId{k - 1})});
  }
  options.search.batch_size = 64;
  options.overhead.start = std::chrono::milliseconds{500};
  options.decide_every = 10;
  std::size_t candidates = 0;
  std::size_t switches = 0;
  for (auto _ : state) {
    const auto planned = frazil::plan_trajectory({profile, cluster}, segments, options);
    candidates = planned.candidates.size();
    switches = planned.transitions.size();
  }
  state.counters["candidates"] = static_cast<double>(candidates);
  state.counters["switches"] = static_cast<double>(switches);
}

frazil::TrajectoryOptions one_schedule(const std::optional<frazil::FeatureStore>& store) {
  frazil::TrajectoryOptions options;
  options.search.micro_batch_sizes = {4};
  options.search.schedules = {frazil::ScheduleKind::kOneForwardOneBackward};
  options.plans_per_mask = 1;
  options.store = store;
  return options;
}

void trajectory_over_100_freeze_events_on_16_devices(benchmark::State& state) {
  plan_over_100_freeze_events(state, make_model(kEvents + 2), one_schedule(std::nullopt));
}
BENCHMARK(trajectory_over_100_freeze_events_on_16_devices)->Unit(benchmark::kMillisecond);

// An epoch has 700 steps; its features take 2.2 GB at each depth.
void trajectory_with_caches_over_100_freeze_events_on_16_devices(benchmark::State& state) {
  frazil::FeatureStore store;
  store.samples = 44'800;
  store.memory = {frazil::Bytes{3'000'000'000},
                  {microseconds{0}, frazil::BytesPerSecond{8'000'000'000}}};
  store.disk = {frazil::Bytes{30'000'000'000},
                {microseconds{100}, frazil::BytesPerSecond{1'000'000'000}}};
  plan_over_100_freeze_events(state, make_model(kEvents + 2), one_schedule(store));
}
BENCHMARK(trajectory_with_caches_over_100_freeze_events_on_16_devices)
    ->Unit(benchmark::kMillisecond);

// Uses the defaults of `frazil plan --forecast`.
void trajectory_of_all_schedules_over_100_freeze_events_on_16_devices(benchmark::State& state) {
  const frazil::ModelProfile profile = make_model(kEvents + 2);
  frazil::TrajectoryOptions options;
  options.search.micro_batch_sizes = frazil::measured_sizes(profile, 64);
  options.search.schedules = frazil::synchronous_schedules();
  options.search.joint = options.search.recompute = true;
  options.search.keep = frazil::kKeptPlans;
  options.search.cut_effort = frazil::kCutEffort;
  plan_over_100_freeze_events(state, profile, options);
}
BENCHMARK(trajectory_of_all_schedules_over_100_freeze_events_on_16_devices)
    ->Unit(benchmark::kMillisecond);

}  // namespace
