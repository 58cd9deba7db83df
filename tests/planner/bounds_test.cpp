#include "planner/bounds.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "planner/lower.h"
#include "planner/what_if.h"
#include "tests/support/sample_models.h"

namespace frazil {
namespace {

using std::chrono::nanoseconds;

WhatIf make_question(int stages, int micro_batches, Duration hop) {
  WhatIf what_if;
  what_if.stages = stages;
  what_if.micro_batches = micro_batches;
  what_if.forward = {nanoseconds(10)};
  what_if.backward_input = {nanoseconds(20)};
  what_if.backward_weight = {nanoseconds(30)};
  what_if.hop = hop;
  return what_if;
}

PlanBounds bounds_of(const WhatIfInputs& inputs) {
  return find_bounds(inputs.plan, inputs.profile, inputs.cluster);
}

TEST(Bounds, AreReachedByEqualStagesWithoutAHop) {
  const PlanBounds bounds = bounds_of(make_what_if(make_question(4, 8, {})));
  EXPECT_EQ(bounds.makespan.time, nanoseconds((8 + 3) * 60));
  EXPECT_EQ(bounds.makespan.name, "busiest-device");
  EXPECT_EQ(bounds.span.time, nanoseconds(8 * 60));
}

TEST(Bounds, OfOneMicroBatchAreItsWayDownAndBack) {
  const PlanBounds bounds = bounds_of(make_what_if(make_question(4, 1, nanoseconds(7))));
  EXPECT_EQ(bounds.makespan.time, nanoseconds(4 * 60 + 2 * 3 * 7));
}

TEST(Bounds, FollowTheSlowestDeviceWithItsHeadAndTail) {
  WhatIf what_if = make_question(3, 5, nanoseconds(2));
  what_if.forward = {nanoseconds(10), nanoseconds(100), nanoseconds(10)};
  const PlanBounds bounds = bounds_of(make_what_if(what_if));
  // Before it: one F and one hop; after it: one hop and one B.
  EXPECT_EQ(bounds.makespan.time, nanoseconds(10 + 2 + 5 * 150 + 2 + 50));
  EXPECT_EQ(bounds.span.time, nanoseconds(5 * 150));
}

TEST(Bounds, CountUpdatesAndStepOverhead) {
  ModelProfile profile = make_chain(1, nanoseconds(10), nanoseconds(10), nanoseconds(10));
  profile.layers[0].update = nanoseconds(7);
  Cluster cluster = make_uniform_cluster(1, Bytes{1'000'000}, {});
  cluster.devices[0].step_overhead = nanoseconds(1000);
  Plan plan;
  plan.batch_size = 2;
  plan.mask = FreezeMask::all_active(1);
  plan.pipelines = {make_pipeline(1, {}, {DeviceId{0}}, {MicroBatchId{0}, MicroBatchId{1}})};
  const PlanBounds bounds = find_bounds(plan, profile, cluster);
  EXPECT_EQ(bounds.makespan.time, nanoseconds(1000 + 2 * 20 + 7));
  EXPECT_EQ(bounds.span.time, nanoseconds(1000 + 2 * 20 + 7));
  EXPECT_EQ(simulate_plan(plan, profile, cluster).makespan, bounds.makespan.time);
}

struct RandomPlan {
  ModelProfile profile;
  Cluster cluster;
  Plan plan;
};

RandomPlan make_random_plan(std::mt19937_64& random) {
  const auto draw = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  RandomPlan made;
  const int layers = draw(2, 8);
  made.profile = make_chain(layers, nanoseconds(1), nanoseconds(1), nanoseconds(1));
  for (Layer& layer : made.profile.layers) {
    layer.update = nanoseconds(draw(0, 50));
    for (CostSample& cost : layer.costs) {
      cost.forward = nanoseconds(draw(1, 100)) * cost.micro_batch_size;
      cost.backward_input = nanoseconds(draw(0, 100)) * cost.micro_batch_size;
    }
  }
  if (draw(0, 1) == 1) {  // a layer read twice: boundaries that skip stages
    made.profile.edges.insert(made.profile.edges.begin() + 1,
                              {LayerId{0}, LayerId{layers - 1}, EdgeKind::kGradient, {Bytes{5}}});
    if (layers == 2) made.profile.edges.pop_back();
  }
  const int stages = draw(1, std::min(layers, 4));
  const int replicas = draw(1, 3);
  made.cluster =
      make_uniform_cluster(stages * replicas, Bytes{1'000'000'000},
                           {nanoseconds(draw(0, 60)), BytesPerSecond{draw(0, 1) * 1'000'000'000}});
  for (Device& device : made.cluster.devices) {
    device.time_ppm = draw(500'000, 2'000'000);
    device.action_overhead = nanoseconds(draw(0, 5));
    device.step_overhead = nanoseconds(draw(0, 1) * draw(0, 300));
  }
  Plan& plan = made.plan;
  plan.micro_batch_size = draw(1, 3);
  plan.batch_size = draw(replicas * plan.micro_batch_size, 20);
  plan.mask = FreezeMask::frozen_prefix(layers, BlockId{draw(0, layers - 1)});
  plan.schedule = NamedSchedule{
      .kind = draw(0, 1) == 1 ? ScheduleKind::kGpipe : ScheduleKind::kOneForwardOneBackward,
      .in_flight = {}};
  std::vector<LayerId> cuts;
  for (int s = 1; s < stages; ++s) cuts.emplace_back(s * layers / stages);
  int first = 0;
  for (int r = 0; r < replicas; ++r) {
    std::vector<DeviceId> devices;
    for (int s = 0; s < stages; ++s) devices.emplace_back(r * stages + s);
    const int end = plan.micro_batches() * (r + 1) / replicas;
    plan.pipelines.push_back(
        make_pipeline(layers, cuts, devices, {MicroBatchId{first}, MicroBatchId{end - 1}}));
    first = end;
  }
  return made;
}

TEST(Bounds, AreNeverAboveTheSimulatedTimes) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const RandomPlan made = make_random_plan(random);
    const PlanBounds bounds = find_bounds(made.plan, made.profile, made.cluster);
    for (const bool clip : {false, true}) {
      const PlanSimulation simulation = simulate_plan(made.plan, made.profile, made.cluster, clip);
      EXPECT_LE(bounds.makespan.time, simulation.makespan);
      EXPECT_LE(bounds.span.time, max_span(simulation.timeline));
      EXPECT_GT(bounds.makespan.time, Duration{0});
    }
  }
}

}  // namespace
}  // namespace frazil
