#include "profiles/cost_scales.h"

#include <gtest/gtest.h>

namespace frazil {
namespace {

// Each layer takes times[l] for F, an I of twice that and a W of three times, and 7 ns to update.
ModelProfile make_layers(const std::vector<std::int64_t>& times) {
  ModelProfile profile;
  for (std::size_t l = 0; l < times.size(); ++l) {
    profile.blocks.push_back("block " + std::to_string(l));
    Layer layer;
    layer.name = profile.blocks.back();
    layer.block = BlockId{l};
    layer.update = Duration{7};
    layer.costs = {{.micro_batch_size = 1,
                    .forward = Duration{times[l]},
                    .backward_input = Duration{times[l] * 2},
                    .backward_weight = Duration{times[l] * 3},
                    .stash = Bytes{8}}};
    profile.layers.push_back(layer);
  }
  return profile;
}

Cluster make_devices(const std::vector<std::int64_t>& time_ppm) {
  Cluster cluster =
      make_uniform_cluster(static_cast<int>(time_ppm.size()), Bytes{1'000'000}, Link{});
  for (std::size_t d = 0; d < time_ppm.size(); ++d) cluster.devices[d].time_ppm = time_ppm[d];
  return cluster;
}

// A device of 1.5 and a layer of 3: every compute of the scaled setting is that of the setting
// times its scales.
TEST(CostScales, MakeTheSettingThatTakesSoLong) {
  const ModelProfile profile = make_layers({10, 20, 30});
  const Cluster cluster = make_devices({1'000'000, 2'000'000});
  const CostScales scales{.device_ppm = {1'000'000, 1'500'000},
                          .layer_ppm = {1'000'000, 3'000'000, 1'000'000}};
  const ModelProfile slow = scaled(profile, scales);
  EXPECT_EQ(model_hash(slow), model_hash(profile));
  EXPECT_EQ(slow.layers[1].costs[0].forward, Duration{60});
  EXPECT_EQ(slow.layers[1].costs[0].backward_input, Duration{120});
  EXPECT_EQ(slow.layers[1].costs[0].backward_weight, Duration{180});
  EXPECT_EQ(slow.layers[1].update, Duration{7});
  EXPECT_EQ(slow.layers[2], profile.layers[2]);
  EXPECT_EQ(scaled(cluster, scales).devices[1].time_ppm, 3'000'000);
  EXPECT_EQ(scaled(profile, no_scales(2, 3)), profile);
  EXPECT_EQ(scaled(cluster, no_scales(2, 3)), cluster);
}

TEST(CostScales, ChangeNothingIfEachIsAMillion) {
  EXPECT_TRUE(changes_nothing({}));
  EXPECT_TRUE(changes_nothing(no_scales(2, 3)));
  EXPECT_FALSE(changes_nothing({.device_ppm = {1'000'000}, .layer_ppm = {1'000'000, 999'999}}));
  EXPECT_FALSE(changes_nothing({.device_ppm = {1'000'001}, .layer_ppm = {1'000'000}}));
}

TEST(CostScales, MultiplyWithinWhatAClusterMaySay) {
  EXPECT_EQ(multiply_ppm(1'300'000, 2'000'000), 2'600'000);
  EXPECT_EQ(multiply_ppm(1, 1), 1) << "never nothing";
  EXPECT_EQ(multiply_ppm(kLargestTimePpm, 2'000'000), kLargestTimePpm);
}

}  // namespace
}  // namespace frazil
