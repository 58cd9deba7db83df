#include "planner/drift/step_costs.h"

#include <gtest/gtest.h>

#include "tests/planner/drift/chain_cases.h"

namespace frazil {
namespace {

// Four micro-batches: F, I and W of a layer of t take 4 x 3 t, those of the first one 4 x (1 + 2) t
// as well, since its W is alone. The second device takes twice as long.
TEST(StepCosts, AreTheProfilesTimesOverTheMicroBatchesOfEachDevice) {
  const ModelProfile profile = make_chain({10, 20, 30});
  const Cluster cluster = make_row({1'000'000, 2'000'000, 1'000'000});
  const StepCosts costs = predict_costs(make_chain_plan(3, {2}, 4), {profile, cluster});
  const std::vector<LayerTime> layers = {{DeviceId{0}, LayerId{0}, Duration{120}},
                                         {DeviceId{0}, LayerId{1}, Duration{240}},
                                         {DeviceId{1}, LayerId{2}, Duration{720}}};
  EXPECT_EQ(costs.layers, layers);
  // Two updates of 7, and one of 14.
  const std::vector<Duration> devices = {Duration{374}, Duration{734}, Duration{0}};
  EXPECT_EQ(costs.devices, devices);
}

TEST(StepCosts, LeaveOutWhatTheMaskAndTheCacheLeaveOut) {
  const ModelProfile profile = make_chain({10, 20, 30});
  const Cluster cluster = make_row({1'000'000, 1'000'000});
  Plan plan = make_chain_plan(3, {2}, 4);
  plan.mask = FreezeMask::parse("011", "test", 1);
  const StepCosts frozen = predict_costs(plan, {profile, cluster});
  const std::vector<LayerTime> layers = {{DeviceId{0}, LayerId{0}, Duration{40}},
                                         {DeviceId{0}, LayerId{1}, Duration{240}},
                                         {DeviceId{1}, LayerId{2}, Duration{360}}};
  EXPECT_EQ(frozen.layers, layers);
  plan.cache_frozen_prefix = true;
  const StepCosts cached = predict_costs(plan, {profile, cluster});
  EXPECT_EQ(cached.layers, std::vector(layers.begin() + 1, layers.end()));
  EXPECT_EQ(frozen.devices[0] - cached.devices[0], Duration{40});
}

TEST(StepCosts, OfReplicasAreThoseOfTheirShares) {
  const ModelProfile profile = make_chain({10, 20});
  const Cluster cluster = make_row({1'000'000, 1'000'000});
  Plan plan = make_chain_plan(2, {}, 4);
  plan.pipelines[0].micro_batches = {{MicroBatchId{0}, MicroBatchId{2}}};
  plan.pipelines.push_back(make_pipeline(2, {}, {DeviceId{1}}, {MicroBatchId{3}, MicroBatchId{3}}));
  const StepCosts costs = predict_costs(plan, {profile, cluster});
  const std::vector<LayerTime> layers = {{DeviceId{0}, LayerId{0}, Duration{90}},
                                         {DeviceId{0}, LayerId{1}, Duration{180}},
                                         {DeviceId{1}, LayerId{0}, Duration{30}},
                                         {DeviceId{1}, LayerId{1}, Duration{60}}};
  EXPECT_EQ(costs.layers, layers);
}

}  // namespace
}  // namespace frazil
