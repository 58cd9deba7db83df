#include "planner/drift/cost_scales.h"

#include <gtest/gtest.h>

#include "planner/prediction/simulate_plan.h"
#include "tests/planner/drift/chain_cases.h"

namespace frazil {
namespace {

DriftFactors drift_of(std::vector<double> devices, std::map<LayerId, double> layers = {}) {
  return {.devices = std::move(devices), .layers = std::move(layers)};
}

TEST(CostScales, MultiplyOneDriftAfterTheOther) {
  CostScales scales = no_scales(2, 3);
  scales = with_drift(scales, drift_of({1.0, 1.3}, {{LayerId{2}, 2.0}}));
  EXPECT_EQ(scales.device_ppm, (std::vector<std::int64_t>{1'000'000, 1'300'000}));
  EXPECT_EQ(scales.layer_ppm, (std::vector<std::int64_t>{1'000'000, 1'000'000, 2'000'000}));
  scales = with_drift(scales, drift_of({1.0, 1 / 1.3}));
  EXPECT_NEAR(static_cast<double>(scales.device_ppm[1]), 1'000'000, 1);
}

TEST(CostScales, StayWithinWhatAClusterMaySay) {
  CostScales scales = no_scales(1, 1);
  for (int i = 0; i < 40; ++i) scales = with_drift(scales, drift_of({1e9}, {{LayerId{0}, 1e-9}}));
  EXPECT_EQ(scales.device_ppm[0], kLargestTimePpm);
  EXPECT_EQ(scales.layer_ppm[0], 1);
  validate(scaled(make_row({1'000'000}), scales), "cluster");
  validate(scaled(make_chain({std::int64_t{1} << 50}), no_scales(1, 1)), "profile");
}

// A device of 1.5 and a layer of 3: every compute of the scaled setting is that of the setting
// times its scales.
TEST(CostScales, MakeTheSettingThatTakesSoLong) {
  const ModelProfile profile = make_chain({10, 20, 30});
  const Cluster cluster = make_row({1'000'000, 2'000'000});
  const CostScales scales{.device_ppm = {1'000'000, 1'500'000},
                          .layer_ppm = {1'000'000, 3'000'000, 1'000'000}};
  const ModelProfile slow = scaled(profile, scales);
  EXPECT_EQ(model_hash(slow), model_hash(profile));
  EXPECT_EQ(slow.layers[1].costs[0].forward, Duration{60});
  EXPECT_EQ(slow.layers[1].costs[1].backward_weight_alone, Duration{120});
  EXPECT_EQ(slow.layers[1].update, Duration{7});
  EXPECT_EQ(slow.layers[2], profile.layers[2]);
  EXPECT_EQ(scaled(cluster, scales).devices[1].time_ppm, 3'000'000);
  EXPECT_EQ(scaled(profile, no_scales(2, 3)), profile);
  EXPECT_EQ(scaled(cluster, no_scales(2, 3)), cluster);
}

}  // namespace
}  // namespace frazil
