#include "sim/cost_model.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <utility>
#include <vector>

#include "profiles/error.h"

namespace frazil {
namespace {

CostSample make_sample(int micro_batch_size, std::int64_t scale) {
  return {.micro_batch_size = micro_batch_size,
          .forward = Duration{1 * scale},
          .forward_frozen = Duration{50'000 * scale},
          .backward_input = Duration{20 * scale},
          .backward_weight = Duration{300 * scale},
          .backward_weight_alone = Duration{4000 * scale},
          .stash = Bytes{5}};
}

// Makes two layers, measured at 2 and 4 samples, of which the second costs ten times the first.
ModelProfile make_profile() {
  ModelProfile profile;
  profile.blocks = {"all"};
  for (const std::int64_t scale : {1, 10}) {
    Layer layer;
    layer.parameters = Bytes{100};
    layer.update = Duration{7 * scale};
    layer.costs = {make_sample(2, 2 * scale), make_sample(4, 4 * scale)};
    profile.layers.push_back(layer);
  }
  return profile;
}

Cluster make_cluster() {
  Cluster cluster =
      make_uniform_cluster(2, Bytes{1 << 20}, {Duration{50}, BytesPerSecond{1'000'000'000}});
  cluster.devices[1].time_ppm = 1'500'000;
  cluster.devices[1].action_overhead = Duration{9};
  cluster.links = {{DeviceId{1}, DeviceId{0}, {Duration{70}, BytesPerSecond{250'000'000}}}};
  return cluster;
}

Compute make_compute(int device, int micro_batch_size, std::vector<LayerWork> parts) {
  return {DeviceId{device}, micro_batch_size, std::move(parts)};
}

std::int64_t price_of(const Work& work) {
  const ModelProfile profile = make_profile();
  const Cluster cluster = make_cluster();
  return price(work, {profile, cluster}).count();
}

TEST(CostModel, EveryPartOfALayerHasItsOwnTime) {
  const auto part = [](LayerPart which) {
    return price_of(make_compute(0, 2, {{LayerId{0}, which}}));
  };
  EXPECT_EQ(part(LayerPart::kForward), 2);
  EXPECT_EQ(part(LayerPart::kBackwardInput), 40);
  EXPECT_EQ(part(LayerPart::kBackwardWeight), 600);
  EXPECT_EQ(part(LayerPart::kBackwardWeightAlone), 8000);
  EXPECT_EQ(part(LayerPart::kForwardFrozen), 100'000);
  EXPECT_EQ(part(LayerPart::kUpdate), 7);
}

TEST(CostModel, ComputeIsTheSumOfItsLayers) {
  EXPECT_EQ(price_of(make_compute(0, 4,
                                  {{LayerId{0}, LayerPart::kForward},
                                   {LayerId{1}, LayerPart::kForward},
                                   {LayerId{1}, LayerPart::kUpdate}})),
            4 + 40 + 70);
  EXPECT_EQ(price_of(make_compute(0, 4, {})), 0);
}

TEST(CostModel, SizesBetweenMeasuredOnesAreInterpolated) {
  EXPECT_EQ(price_of(make_compute(0, 3, {{LayerId{1}, LayerPart::kForward}})), 30);
}

TEST(CostModel, ASlowerDeviceStretchesTheSumAndAddsItsOverhead) {
  // The compute time (2 + 7) x 1.5 = 13.5 is rounded down once; the overhead is 9.
  EXPECT_EQ(price_of(make_compute(
                1, 2, {{LayerId{0}, LayerPart::kForward}, {LayerId{0}, LayerPart::kUpdate}})),
            13 + 9);
}

TEST(CostModel, TransfersHoldTheLinkAndHopsAreItsLatency) {
  EXPECT_EQ(price_of(Transfer{DeviceId{0}, DeviceId{1}, Bytes{1000}}), 1000);
  EXPECT_EQ(price_of(Transfer{DeviceId{1}, DeviceId{0}, Bytes{1000}}), 4000);
  EXPECT_EQ(price_of(Transfer{DeviceId{1}, DeviceId{1}, Bytes{1000}}), 0);
  EXPECT_EQ(price_of(Hop{DeviceId{0}, DeviceId{1}}), 50);
  EXPECT_EQ(price_of(Hop{DeviceId{1}, DeviceId{0}}), 70);
  EXPECT_EQ(price_of(Hop{DeviceId{0}, DeviceId{0}}), 0);
}

TEST(CostModel, CollectivesCostTheirClosedFormAndFixedWorkItsTime) {
  const Collective ring{.kind = CollectiveKind::kRingAllReduce,
                        .devices = {DeviceId{0}, DeviceId{1}},
                        .size = Bytes{1000},
                        .owned = {}};
  // The ring takes 2 steps of 70 ns, and 1000 bytes at a quarter of a byte per ns.
  EXPECT_EQ(price_of(ring), 140 + 4000);
  EXPECT_EQ(price_of(Fixed{Duration{123}}), 123);
}

bool is_extrapolated(const Work& work) {
  const ModelProfile profile = make_profile();
  const Cluster cluster = make_cluster();
  bool extrapolated = false;
  price(work, {profile, cluster}, &extrapolated);
  return extrapolated;
}

TEST(CostModel, SaysWhenASizeLiesOutsideTheMeasuredOnes) {
  const std::vector<LayerWork> forward = {{LayerId{0}, LayerPart::kForward}};
  EXPECT_FALSE(is_extrapolated(make_compute(0, 2, forward)));
  EXPECT_FALSE(is_extrapolated(make_compute(0, 4, forward)));
  EXPECT_TRUE(is_extrapolated(make_compute(0, 1, forward)));
  EXPECT_TRUE(is_extrapolated(make_compute(0, 5, forward)));
}

TEST(CostModel, OneExtrapolatedLayerMarksTheWholeWork) {
  ModelProfile profile = make_profile();
  profile.layers[1].costs.push_back(make_sample(8, 80));
  bool extrapolated = false;
  const std::vector<LayerWork> both = {{LayerId{0}, LayerPart::kForward},
                                       {LayerId{1}, LayerPart::kForward}};
  const Cluster cluster = make_cluster();
  price(make_compute(0, 8, both), {profile, cluster}, &extrapolated);
  EXPECT_TRUE(extrapolated);
}

TEST(CostModel, AnUpdateDoesNotDependOnTheMicroBatchSize) {
  EXPECT_FALSE(is_extrapolated(make_compute(0, 5, {{LayerId{0}, LayerPart::kUpdate}})));
}

TEST(CostModel, LeavesAnEarlierWordOfExtrapolationAlone) {
  const ModelProfile profile = make_profile();
  const Cluster cluster = make_cluster();
  bool extrapolated = true;
  price(Fixed{}, {profile, cluster}, &extrapolated);
  EXPECT_TRUE(extrapolated);
}

TEST(CostModel, PricesTheWholeTable) {
  TaskGraph graph;
  graph.add_work(Fixed{Duration{5}});
  graph.add_work(make_compute(0, 8, {{LayerId{0}, LayerPart::kForward}}));
  graph.add_work(Hop{DeviceId{1}, DeviceId{0}});
  const ModelProfile profile = make_profile();
  const Cluster cluster = make_cluster();
  const Prices prices = price_all(graph, {profile, cluster});
  EXPECT_EQ(prices.of_work, (std::vector<Duration>{Duration{5}, Duration{8}, Duration{70}}));
  EXPECT_TRUE(prices.extrapolated);
  EXPECT_FALSE(price_all(TaskGraph{}, {profile, cluster}).extrapolated);
}

bool is_refused(const Work& work, const ModelProfile& profile) {
  const Cluster cluster = make_cluster();
  try {
    price(work, {profile, cluster});
  } catch (const std::logic_error&) {
    return true;
  }
  return false;
}

TEST(CostModel, RefusesUnknownLayersDevicesAndTimesThatDoNotFit) {
  const std::vector<LayerWork> unknown = {{LayerId{2}, LayerPart::kForward}};
  EXPECT_TRUE(is_refused(make_compute(0, 2, unknown), make_profile()));
  EXPECT_TRUE(is_refused(make_compute(2, 2, {}), make_profile()));
  ModelProfile profile = make_profile();
  profile.layers[0].update = Duration{std::int64_t{1} << 62};
  const std::vector<LayerWork> updates(2, {LayerId{0}, LayerPart::kUpdate});
  const Cluster cluster = make_cluster();
  EXPECT_THROW(price(make_compute(0, 2, updates), {profile, cluster}), InfeasibleError);
}

}  // namespace
}  // namespace frazil
