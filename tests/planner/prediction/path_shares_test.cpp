#include "planner/prediction/path_shares.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <string>

#include "planner/plan/schedule_facts.h"
#include "planner/schedules/make_schedule.h"
#include "planner/what_if/what_if.h"
#include "sim/cost_model.h"
#include "tests/support/sample_models.h"

namespace frazil {
namespace {

using std::chrono::nanoseconds;

struct ExplainedPath {
  Duration makespan{0};
  PathShares shares;
};

ExplainedPath explain_path(const Plan& plan, const ModelProfile& profile, const Cluster& cluster) {
  const Activity activity = find_activity(profile, plan.mask);
  const auto devices = static_cast<int>(cluster.devices.size());
  const Setting setting{profile, cluster};
  const Schedule completed =
      complete_schedule(make_schedule(plan, devices, setting), plan, profile, activity);
  const LoweredStep step = lower(plan, completed, setting, activity);
  const Simulation simulation = simulate(step.graph, setting, step.actions);
  const std::vector<Duration> prices = price_all(step.graph, setting).of_work;
  return {simulation.makespan,
          share_out(find_critical_path(step.graph, simulation, prices), step, simulation, devices)};
}

Duration time_of(const PathShares& shares, ActionKind kind) {
  return shares.compute[static_cast<std::size_t>(kind)];
}

// A message of stage 0 takes 100 ns on its link and 7 ns more to arrive; stage 0 starts 3 ns late.
TEST(PathShares, NameComputeTransfersHopsAndOverheads) {
  const ModelProfile profile = make_chain(2, nanoseconds(10), nanoseconds(10), nanoseconds(10));
  Cluster cluster =
      make_uniform_cluster(2, Bytes{1'000'000}, {nanoseconds(7), BytesPerSecond{100'000'000}});
  cluster.devices[0].step_overhead = nanoseconds(3);
  Plan plan;
  plan.model_hash = model_hash(profile);
  plan.mask = FreezeMask::all_active(2);
  plan.schedule = NamedSchedule{.kind = ScheduleKind::kGpipe};
  plan.pipelines = {make_pipeline(2, {LayerId{1}}, {DeviceId{0}, DeviceId{1}},
                                  {MicroBatchId{0}, MicroBatchId{0}})};
  const auto [makespan, shares] = explain_path(plan, profile, cluster);
  // The path is 3, 0F0 10, 100 + 7, 1F0 10, 1B0 20, 100 + 7, 0B0 (W alone) 10.
  EXPECT_EQ(makespan, nanoseconds(267));
  EXPECT_EQ(total(shares), makespan);
  EXPECT_EQ(time_of(shares, ActionKind::kForward), nanoseconds(20));
  EXPECT_EQ(time_of(shares, ActionKind::kBackward), nanoseconds(30));
  EXPECT_EQ(shares.transfers, nanoseconds(200));
  EXPECT_EQ(shares.hops, nanoseconds(14));
  EXPECT_EQ(shares.overheads, nanoseconds(3));
  EXPECT_EQ(shares.of_device, (std::vector<Duration>{nanoseconds(23), nanoseconds(30)}));
}

TEST(PathShares, NameCollectivesAndUpdates) {
  ModelProfile profile = make_chain(1, nanoseconds(10), nanoseconds(10), nanoseconds(10));
  profile.layers[0].update = nanoseconds(4);
  const Cluster cluster =
      make_uniform_cluster(2, Bytes{1'000'000}, {nanoseconds(50), BytesPerSecond{1'000'000'000}});
  Plan plan;
  plan.model_hash = model_hash(profile);
  plan.batch_size = 2;
  plan.mask = FreezeMask::all_active(1);
  plan.schedule = NamedSchedule{.kind = ScheduleKind::kGpipe};
  for (int d = 0; d < 2; ++d) {
    plan.pipelines.push_back(
        make_pipeline(1, {}, {DeviceId{d}}, {MicroBatchId{d}, MicroBatchId{d}}));
  }
  const auto [makespan, shares] = explain_path(plan, profile, cluster);
  EXPECT_EQ(total(shares), makespan);
  EXPECT_EQ(time_of(shares, ActionKind::kUpdate), nanoseconds(4));
  EXPECT_EQ(shares.collectives, makespan - nanoseconds(10 + 10 + 4));
  EXPECT_GT(shares.collectives, nanoseconds(100));
}

TEST(PathShares, AddUpToTheMakespanOfEverySchedule) {
  PathShares seen;
  for (const ScheduleFacts& facts : all_schedules()) {
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
      SCOPED_TRACE(std::string(schedule_name(facts.kind)) + ", seed " + std::to_string(seed));
      std::mt19937_64 random(seed);
      WhatIf what_if;
      what_if.stages = 2 * (static_cast<int>(random() % 3) + 1);
      what_if.micro_batches = 2 * what_if.stages;
      what_if.schedule = facts.kind;
      what_if.forward = {Duration{random() % 100 + 20}};
      what_if.backward_input = {Duration{random() % 100 + 20}};
      what_if.backward_weight = {Duration{random() % 100 + 20}};
      what_if.hop = Duration{random() % 50 + 1};
      const WhatIfInputs inputs = make_what_if(what_if);
      const auto [makespan, shares] = explain_path(inputs.plan, inputs.profile, inputs.cluster);
      EXPECT_EQ(total(shares), makespan);
      const auto sum_of = [](const auto& times) {
        return std::accumulate(times.begin(), times.end(), Duration{0});
      };
      EXPECT_EQ(sum_of(shares.of_device), sum_of(shares.compute) + shares.overheads);
      for (std::size_t kind = 0; kind < shares.compute.size(); ++kind) {
        seen.compute[kind] += shares.compute[kind];
      }
      seen.hops += shares.hops;
    }
  }
  for (const ActionKind kind :
       {ActionKind::kForward, ActionKind::kBackwardInput, ActionKind::kBackwardWeight,
        ActionKind::kBackward, ActionKind::kRecompute, ActionKind::kPair}) {
    EXPECT_GT(time_of(seen, kind), Duration{0}) << kind_name(kind);
  }
  EXPECT_GT(seen.hops, Duration{0});
}

}  // namespace
}  // namespace frazil
