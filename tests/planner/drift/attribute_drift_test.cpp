#include "planner/drift/attribute_drift.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/planner/drift/chain_cases.h"

namespace frazil {
namespace {

// The whole of a device, or a layer on it, that takes `factor` x; changes of less than 2 % may be
// noise.
CostChange make_change(int device, std::optional<int> layer, double factor, bool is_outside,
                       double weight = 1) {
  return {.device = DeviceId{device},
          .layer = layer ? std::optional(LayerId{*layer}) : std::nullopt,
          .weight = weight,
          .change = std::log(factor),
          .noise = 0.02,
          .is_outside = is_outside};
}

void expect_devices(const Drift& drift, const std::vector<double>& devices) {
  ASSERT_EQ(drift.now.devices.size(), devices.size());
  for (std::size_t d = 0; d < devices.size(); ++d)
    EXPECT_NEAR(drift.now.devices[d], devices[d], 1e-12);
}

TEST(AttributeDrift, GivesTheDeviceWhatAllItsWorkHasChangedBy) {
  const Drift drift = attribute_drift(
      {make_change(0, std::nullopt, 1.1, true), make_change(1, std::nullopt, 1.1 * 1.3, true),
       make_change(0, 0, 1.1, false), make_change(1, 1, 1.1 * 1.3, false)},
      3);
  expect_devices(drift, {1, 1.3, 1});
  EXPECT_TRUE(drift.now.layers.empty());
  EXPECT_NEAR(drift.least.devices[1], 1.3 * std::exp(-0.02), 1e-12);
  EXPECT_EQ(drift.what, "device 1 takes 1.30 x");
}

TEST(AttributeDrift, OfTwoDevicesTheOneThatHasChangedLessIsAsBefore) {
  const Drift drift = attribute_drift(
      {make_change(0, std::nullopt, 1.01, true), make_change(1, std::nullopt, 0.5, true)}, 2);
  expect_devices(drift, {1, 0.5 / 1.01});
  EXPECT_EQ(drift.what, "device 1 takes 0.50 x");
}

TEST(AttributeDrift, OfManyDevicesTheMedianIsAsBefore) {
  const Drift drift = attribute_drift(
      {make_change(0, std::nullopt, 1.2, false), make_change(1, std::nullopt, 1.2, false),
       make_change(2, std::nullopt, 2.4, true), make_change(3, std::nullopt, 1.19, false)},
      4);
  expect_devices(drift, {1, 1, 2, 1.19 / 1.2});
  EXPECT_EQ(drift.what, "device 2 takes 2.00 x");
}

// The layer is a fifth of its device's work: the device as a whole has changed by less.
TEST(AttributeDrift, GivesALayerWhatIsLeftBesideMostOfItsDevice) {
  const Drift drift =
      attribute_drift({make_change(0, std::nullopt, 1.0, false),
                       make_change(1, std::nullopt, 1.4, true), make_change(0, 0, 1.0, false),
                       make_change(1, 1, 1.0, false, 4), make_change(1, 2, 3.0, true, 1)},
                      2);
  expect_devices(drift, {1, 1});
  ASSERT_EQ(drift.now.layers.size(), 1U);
  EXPECT_NEAR(drift.now.layers.at(LayerId{2}), 3, 1e-12);
  EXPECT_NEAR(drift.least.layers.at(LayerId{2}), 3 * std::exp(-0.02), 1e-12);
  EXPECT_EQ(drift.what, "layer 2 takes 3.00 x");
}

TEST(AttributeDrift, TellsALayerAndADeviceApartWhereBothHaveDrifted) {
  const Drift drift =
      attribute_drift({make_change(0, std::nullopt, 1.0, false),
                       make_change(1, std::nullopt, 1.7, true), make_change(0, 0, 1.0, false),
                       make_change(1, 1, 1.5, false, 4), make_change(1, 2, 3.0, true, 1)},
                      2);
  expect_devices(drift, {1, 1.5});
  EXPECT_NEAR(drift.now.layers.at(LayerId{2}), 2, 1e-12);
  EXPECT_EQ(drift.what, "layer 2 takes 2.00 x, device 1 takes 1.50 x");
}

TEST(AttributeDrift, SaysNothingWhereNothingStandsOut) {
  const Drift drift = attribute_drift(
      {make_change(0, std::nullopt, 1.0, false), make_change(1, std::nullopt, 1.01, false),
       make_change(1, 1, 1.01, true), make_change(1, 2, 1.0, false)},
      2);
  EXPECT_EQ(drift.what, "");
  EXPECT_TRUE(drift.now.layers.empty());
}

DriftFactors drift_of(std::vector<double> devices, std::map<LayerId, double> layers = {}) {
  return {.devices = std::move(devices), .layers = std::move(layers)};
}

TEST(WithDrift, MultipliesOneDriftAfterTheOther) {
  CostScales scales = no_scales(2, 3);
  scales = with_drift(scales, drift_of({1.0, 1.3}, {{LayerId{2}, 2.0}}));
  EXPECT_EQ(scales.device_ppm, (std::vector<std::int64_t>{1'000'000, 1'300'000}));
  EXPECT_EQ(scales.layer_ppm, (std::vector<std::int64_t>{1'000'000, 1'000'000, 2'000'000}));
  scales = with_drift(scales, drift_of({1.0, 1 / 1.3}));
  EXPECT_NEAR(static_cast<double>(scales.device_ppm[1]), 1'000'000, 1);
}

TEST(WithDrift, StaysWithinWhatAClusterMaySay) {
  CostScales scales = no_scales(1, 1);
  for (int i = 0; i < 40; ++i) scales = with_drift(scales, drift_of({1e9}, {{LayerId{0}, 1e-9}}));
  EXPECT_EQ(scales.device_ppm[0], kLargestTimePpm);
  EXPECT_EQ(scales.layer_ppm[0], 1);
  validate(scaled(make_row({1'000'000}), scales), "cluster");
  validate(scaled(make_chain({std::int64_t{1} << 50}), no_scales(1, 1)), "profile");
}

}  // namespace
}  // namespace frazil
