// Tests the cost of a transition between plans, predicted layer by layer.

#include "planner/transitions/transition_cost.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/support/sample_models.h"

namespace frazil {
namespace {

using std::chrono::microseconds;

// Makes layers of 1000 parameter bytes and 2000 bytes of optimizer state.
ModelProfile six_layers() {
  return make_chain(6, microseconds{1}, microseconds{1}, microseconds{1});
}

Plan stages(const std::vector<LayerId>& cuts, const std::vector<DeviceId>& devices) {
  Plan plan;
  plan.batch_size = 4;
  plan.micro_batch_size = 1;
  plan.mask = FreezeMask::all_active(6);
  plan.pipelines = {make_pipeline(6, cuts, devices, {MicroBatchId{0}, MicroBatchId{3}})};
  return plan;
}

// Makes links where a byte takes 1 us and a message 5 us more.
Cluster slow_links(int devices) {
  return make_uniform_cluster(devices, Bytes{1 << 30},
                              {microseconds{5}, BytesPerSecond{1'000'000}});
}

TransitionCost predict(const Plan& from, const Plan& to, int devices,
                       const std::string& trained = "111111") {
  const ModelProfile profile = six_layers();
  const Cluster cluster = slow_links(devices);
  return price_transition(from, to, {profile, cluster},
                          find_activity(profile, FreezeMask::parse(trained, "test", 1)),
                          {.plan = microseconds{7}, .start = microseconds{11}});
}

TEST(TransitionCost, OfTheSamePlaceIsNothing) {
  const Plan plan = stages({LayerId{3}}, {DeviceId{0}, DeviceId{1}});
  Plan masked = plan;
  masked.mask = FreezeMask::parse("000111", "test", 1);
  EXPECT_EQ(predict(plan, masked, 2), TransitionCost{});
}

TEST(TransitionCost, IsOneMessagePerLayerThatMoves) {
  const TransitionCost cost = predict(stages({LayerId{3}}, {DeviceId{0}, DeviceId{1}}),
                                      stages({LayerId{5}}, {DeviceId{0}, DeviceId{1}}), 2);
  EXPECT_EQ(cost.moved, Bytes{6000});  // layers 3 and 4
  EXPECT_EQ(cost.move, microseconds{2 * (3000 + 5)});
  EXPECT_EQ(cost.total, cost.move + microseconds{18});
}

TEST(TransitionCost, OfFrozenLayersIsTheirParametersAlone) {
  const Plan from = stages({LayerId{3}}, {DeviceId{0}, DeviceId{1}});
  const Plan to = stages({LayerId{1}}, {DeviceId{0}, DeviceId{1}});
  EXPECT_EQ(predict(from, to, 2, "000111").moved, Bytes{2000});
  EXPECT_EQ(predict(from, to, 2, "001111").moved, Bytes{1000 + 3000});
}

// The only holder sends everything three times in a transition from one device to four replicas.
TEST(TransitionCost, IsThatOfTheBusiestDevice) {
  Plan replicas = stages({}, {DeviceId{0}});
  replicas.pipelines.clear();
  for (int r = 0; r < 4; ++r) {
    replicas.pipelines.push_back(
        make_pipeline(6, {}, {DeviceId{r}}, {MicroBatchId{r}, MicroBatchId{r}}));
  }
  const TransitionCost spread = predict(stages({}, {DeviceId{0}}), replicas, 4);
  EXPECT_EQ(spread.moved, Bytes{3 * 6 * 3000});
  EXPECT_EQ(spread.move, microseconds{3 * 6 * (3000 + 5)});
  // Two replicas that hold the model share the sends: both send six messages at once, each to a
  // receiver of its own.
  Plan two = replicas;
  two.pipelines.resize(2);
  two.pipelines[1].micro_batches = {{MicroBatchId{1}, MicroBatchId{3}}};
  EXPECT_EQ(predict(two, replicas, 4).move, microseconds{6 * (3000 + 5)});
}

// A byte within one memory takes 10 ns to copy, 4 ns if all devices copy together, and 1 ns to
// hash.
TEST(TransitionCost, WithinOneMemoryIsThatOfWhatIsCopiedAndHashed) {
  const TransitionOverhead overhead{microseconds{7}, microseconds{3}, microseconds{11},
                                    OneMemory{.copied_alone = BytesPerSecond{100'000'000},
                                              .copied_together = BytesPerSecond{250'000'000},
                                              .hashed = BytesPerSecond{1'000'000'000}}};
  const ModelProfile profile = six_layers();
  const Cluster cluster = slow_links(4);
  const auto price = [&](const Plan& from, const Plan& to) {
    return price_transition(from, to, {profile, cluster},
                            find_activity(profile, FreezeMask::all_active(6)), overhead);
  };
  const auto replicate = [](const std::vector<std::vector<LayerId>>& cuts) {
    Plan plan = stages({}, {DeviceId{0}});
    plan.pipelines.clear();
    std::int32_t device = 0;
    for (std::size_t r = 0; r < cuts.size(); ++r) {
      std::vector<DeviceId> devices;
      for (std::size_t s = 0; s <= cuts[r].size(); ++s) devices.emplace_back(device++);
      const MicroBatchId own{r};
      plan.pipelines.push_back(make_pipeline(6, cuts[r], devices, {own, own}));
    }
    return plan;
  };
  const Plan one = replicate({{}});
  const Plan two = replicate({{LayerId{4}}});
  const Plan replicas = replicate({{}, {}});
  const Plan four = replicate({{}, {}, {}, {}});
  // The second device takes its layers over without a copy.
  EXPECT_EQ(price(one, two).moved, Bytes{2 * 3000});
  EXPECT_EQ(price(one, two).move, microseconds{3});
  EXPECT_EQ(price(one, two).total, microseconds{21});
  // Two of four replicas go away, and nothing is copied.
  EXPECT_EQ(price(four, replicas).moved, Bytes{});
  EXPECT_EQ(price(four, replicas).move, microseconds{3});
  // The first device copies 2 layers and the second 4. The second alone takes longer than both at
  // the shared rate.
  EXPECT_EQ(price(two, replicas).move, microseconds{4 * 3000 / 100 + 3});
  EXPECT_EQ(price(two, replicas).total, microseconds{120 + 21});
  // Three devices copy all layers: together they are slower than each alone.
  EXPECT_EQ(price(one, four).move, microseconds{3 * 6 * 3000 / 250 + 3});
  // A stage whose device changes is handed over to its first taker; the second copies it.
  const Plan moved = stages({LayerId{4}}, {DeviceId{2}, DeviceId{3}});
  EXPECT_EQ(price(moved, replicas).move, microseconds{6 * 3000 / 100 + 3});
  EXPECT_EQ(price(moved, replicas).moved, Bytes{2 * 6 * 3000});
  // Layers that freeze leave their moments behind, and are hashed if they are cached.
  Plan frozen = replicas;
  frozen.mask = FreezeMask::parse("000111", "test", 1);
  EXPECT_EQ(price(one, frozen).moved, Bytes{3 * 1000 + 3 * 3000});
  EXPECT_EQ(price(one, frozen).move, microseconds{12000 / 100 + 3});
  frozen.cache_frozen_prefix = true;
  EXPECT_EQ(price(one, frozen).move, microseconds{123});
  EXPECT_EQ(price(one, frozen).total, microseconds{123 + 3 + 18});
}

// The time is no less than what the layers' bytes need at the busiest receiver, whatever the plans,
// and the moved bytes are counted by hand.
TEST(TransitionCost, CountsEveryNewHolderOfEveryLayer) {
  const unsigned seed = 11;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const auto draw = [&] {
    const int count = 1 + static_cast<int>(random() % 4);
    std::vector<LayerId> cuts;
    std::vector<DeviceId> devices{DeviceId{static_cast<int>(random() % 5)}};
    for (int c = 1; c < 6 && static_cast<int>(devices.size()) < count; ++c) {
      if (random() % 2 == 0) continue;
      cuts.emplace_back(c);
      devices.emplace_back(static_cast<int>(random() % 5));
    }
    return stages(cuts, devices);
  };
  for (int trial = 0; trial < 300; ++trial) {
    const Plan from = draw();
    const Plan to = draw();
    std::int64_t moved = 0;
    for (int l = 0; l < 6; ++l) {
      const auto device = [&](const Plan& plan) {
        for (const Stage& stage : plan.pipelines[0].stages) {
          if (stage.layers[0].first.value <= l && l <= stage.layers[0].last.value) {
            return stage.devices[0];
          }
        }
        return DeviceId{-1};
      };
      if (device(from) != device(to)) moved += 3000;
    }
    const TransitionCost cost = predict(from, to, 5);
    ASSERT_EQ(cost.moved.count, moved) << "trial " << trial;
    ASSERT_LE(cost.move, microseconds{moved + 5 * moved / 3000});
  }
}

}  // namespace
}  // namespace frazil
