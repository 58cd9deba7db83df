#include "planner/drift/drift_detector.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "tests/planner/drift/tested_rule.h"

namespace frazil {
namespace {

// Two devices of 6 ms with layers of 1, 2 and 3 ms each.
StepCosts two_devices() {
  StepCosts costs;
  for (int d = 0; d < 2; ++d) {
    costs.devices.emplace_back(6'000'000);
    for (int l = 0; l < 3; ++l) {
      costs.layers.push_back({DeviceId{d}, LayerId{3 * d + l}, Duration{1'000'000 * (l + 1)}});
    }
  }
  return costs;
}

// Measures steps whose layers vary by `noise` and whose devices are the sums of their layers.
class Steps {
 public:
  Steps(std::uint64_t seed, double noise) : random_(seed), noise_(noise) {}

  double device_factor[2] = {1, 1};
  double layer_factor[6] = {1, 1, 1, 1, 1, 1};
  double common = 1.1;  // what the profile gets wrong

  StepCosts take() {
    StepCosts costs = two_devices();
    std::normal_distribution<double> normal(0, noise_);
    for (Duration& device : costs.devices) device = kNoTime;
    for (LayerTime& layer : costs.layers) {
      const double factor = common * device_factor[layer.device.index()] *
                            layer_factor[layer.layer.index()] * std::exp(normal(random_));
      layer.time = Duration{std::llround(static_cast<double>(layer.time.count()) * factor)};
      costs.devices[layer.device.index()] += layer.time;
    }
    return costs;
  }

 private:
  std::mt19937_64 random_;
  double noise_;
};

// Takes steps [first, end) and returns the drift that was told, with its step.
std::optional<std::pair<Step, Drift>> find_drift(DriftDetector& detector, Steps& steps, Step first,
                                                 Step end, double foreign = 0) {
  for (Step step = first; step < end; ++step) {
    if (const auto drift = detector.add(steps.take(), foreign)) return {{step, *drift}};
  }
  return std::nullopt;
}

DriftDetector begun() {
  DriftDetector detector(kRule);
  detector.begin(two_devices());
  return detector;
}

// Returns the chance that a score is 8 or more in the long run, where a window is outside with
// chance p: the distribution of the score, window by window.
double chance_of_eight(double p) {
  std::vector<double> chances(200);
  chances[0] = 1;
  for (int window = 0; window < 2'000; ++window) {
    std::vector<double> next(chances.size());
    for (std::size_t score = 0; score + 1 < chances.size(); ++score) {
      next[score + 1] += p * chances[score];
      next[score == 0 ? 0 : score - 1] += (1 - p) * chances[score];
    }
    chances = next;
  }
  double chance = 0;
  for (std::size_t score = 8; score < chances.size(); ++score) chance += chances[score];
  return chance;
}

// Returns the rate of which one half is what a score reaches by chance under a threshold, if the
// other half gives this quantile of chi-square for 37 degrees of freedom, a baseline of 101
// windows.
double rate_of(double threshold, double chi_square) {
  const double normal = threshold / std::sqrt(37 / chi_square);
  return 2 * 2 * chance_of_eight(std::erfc(normal / std::sqrt(2)) / 2);
}

// Quantiles of chi-square as printed tables have them, at 0.025 and 0.005.
TEST(DriftDetector, HasTheThresholdThatFollowsFromTheStatedRate) {
  EXPECT_NEAR(rate_of(find_drift_threshold({6, 0.05, 6}, 1, 101), 22.1056), 0.05, 1e-4);
  EXPECT_NEAR(rate_of(find_drift_threshold({6, 0.01, 6}, 1, 101), 18.5858), 0.01, 1e-4);
  // Five quantities in two windows of the run.
  EXPECT_NEAR(10 * rate_of(find_drift_threshold({6, 0.25, 12}, 5, 101), 22.1056), 0.25, 1e-3);
}

TEST(DriftDetector, TellsASlowerDeviceWithinTwentySteps) {
  int covered = 0;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(seed);
    DriftDetector detector = begun();
    Steps steps(seed, 0.01);
    ASSERT_FALSE(find_drift(detector, steps, 0, 200));
    steps.device_factor[1] = 1.3;
    const auto found = find_drift(detector, steps, 200, 220);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->second.now.devices[0], 1.0);
    EXPECT_NEAR(found->second.now.devices[1], 1.3, 0.05);
    EXPECT_TRUE(found->second.now.layers.empty());
    EXPECT_GT(found->second.least.devices[1], 1);
    covered += found->second.least.devices[1] < 1.3 ? 1 : 0;
    EXPECT_EQ(found->second.what.substr(0, 16), "device 1 takes 1");
  }
  EXPECT_GE(covered, 95) << "of 100 intervals";
}

TEST(DriftDetector, TellsADeviceThatIsFastAgainAfterANewPlan) {
  DriftDetector detector = begun();
  Steps steps(5, 0.01);
  steps.device_factor[1] = 1.3;
  ASSERT_FALSE(find_drift(detector, steps, 0, 200)) << "a plan's first windows are its baseline";
  steps.device_factor[1] = 1;
  const auto found = find_drift(detector, steps, 200, 220);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->second.now.devices[0], 1.0);
  EXPECT_NEAR(found->second.now.devices[1], 1 / 1.3, 0.05);
}

TEST(DriftDetector, TellsALayerApartFromItsDevice) {
  DriftDetector detector = begun();
  Steps steps(3, 0.01);
  ASSERT_FALSE(find_drift(detector, steps, 0, 400));
  steps.layer_factor[3] = 1.8;  // the smallest of device 1
  const auto found = find_drift(detector, steps, 400, 420);
  ASSERT_TRUE(found);
  ASSERT_EQ(found->second.now.layers.size(), 1U);
  EXPECT_NEAR(found->second.now.layers.at(LayerId{3}), 1.8, 0.1);
  EXPECT_NEAR(found->second.now.devices[1], 1, 0.03);
  EXPECT_EQ(found->second.what.substr(0, 16), "layer 3 takes 1.");
}

TEST(DriftDetector, TellsNothingOfAHostThatIsSlowerAsAWhole) {
  DriftDetector detector = begun();
  Steps steps(7, 0.01);
  ASSERT_FALSE(find_drift(detector, steps, 0, 200));
  steps.common = 1.6;
  EXPECT_FALSE(find_drift(detector, steps, 200, 2'000));
}

// The score reaches seven.
TEST(DriftDetector, TellsNothingOfSevenBadWindows) {
  DriftDetector detector = begun();
  Steps steps(9, 0.01);
  ASSERT_FALSE(find_drift(detector, steps, 0, 200));
  steps.device_factor[1] = 2;
  EXPECT_FALSE(find_drift(detector, steps, 200, 214));
  steps.device_factor[1] = 1;
  EXPECT_FALSE(find_drift(detector, steps, 214, 600));
}

TEST(DriftDetector, WaitsForTwiceTheWindowsOfTheGreatestBurst) {
  DriftDetector detector = begun();
  Steps steps(10, 0.01);
  ASSERT_FALSE(find_drift(detector, steps, 0, 200));
  steps.device_factor[1] = 2;
  ASSERT_FALSE(find_drift(detector, steps, 200, 214));
  steps.device_factor[1] = 1;
  ASSERT_FALSE(find_drift(detector, steps, 214, 300));
  steps.device_factor[1] = 1.3;
  const auto found = find_drift(detector, steps, 300, 400);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->first, 300 + 14 * kRule.window_steps - 1);
}

// Device 1 takes twice as long for so many windows, and then as long as it did until the score is 0
// again. Returns the step after.
Step pass_burst(DriftDetector& detector, Steps& steps, Step first, int windows) {
  const Step middle = first + windows * kRule.window_steps;
  const Step end = middle + windows * kRule.window_steps;
  steps.device_factor[1] = 2;
  EXPECT_FALSE(find_drift(detector, steps, first, middle)) << "a burst of " << windows;
  steps.device_factor[1] = 1;
  EXPECT_FALSE(find_drift(detector, steps, middle, end));
  return end;
}

// Bursts of 7 and 13 windows, after which a drift has to last 26. Returns the step after.
Step pass_long_burst(DriftDetector& detector, Steps& steps) {
  EXPECT_FALSE(find_drift(detector, steps, 0, 200));
  const Step first = pass_burst(detector, steps, 200, 7);
  return pass_burst(detector, steps, first, 13);
}

TEST(DriftDetector, ForgetsALongBurstAfterSixtyFourQuietWindows) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    DriftDetector detector = begun();
    Steps steps(seed, 0.01);
    const Step quiet = pass_long_burst(detector, steps);
    const Step drifts = quiet + kBurstWindows * kRule.window_steps;
    ASSERT_FALSE(find_drift(detector, steps, quiet, drifts));
    steps.device_factor[1] = 1.3;
    const auto found = find_drift(detector, steps, drifts, drifts + 100);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->first, drifts + 8 * kRule.window_steps - 1) << "as if there had been no burst";
  }
}

// Of two such bursts the second ends in the last window for which the first is kept.
TEST(DriftDetector, TellsNothingOfASecondLongBurstWithinSixtyFourWindows) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    DriftDetector detector = begun();
    Steps steps(seed, 0.01);
    const Step quiet = pass_long_burst(detector, steps);
    const Step second = quiet + (kBurstWindows - 2 * 13) * kRule.window_steps;
    ASSERT_FALSE(find_drift(detector, steps, quiet, second));
    const Step after = pass_burst(detector, steps, second, 13);
    EXPECT_EQ(after, quiet + kBurstWindows * kRule.window_steps);
    // The second is kept as long from its own end on.
    steps.device_factor[1] = 1.3;
    const auto found = find_drift(detector, steps, after, after + 100);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->first, after + 26 * kRule.window_steps - 1);
  }
}

// 17 % is the least that is told.
TEST(DriftDetector, TellsNothingOfADeviceThatIsATenthSlower) {
  DriftDetector detector = begun();
  Steps steps(12, 0.01);
  ASSERT_FALSE(find_drift(detector, steps, 0, 200));
  steps.device_factor[1] = 1.1;
  EXPECT_FALSE(find_drift(detector, steps, 200, 1'000));
}

TEST(DriftDetector, LeavesOutAndCountsWindowsBesideForeignLoad) {
  DriftDetector detector = begun();
  Steps steps(11, 0.01);
  ASSERT_FALSE(find_drift(detector, steps, 0, 200));
  steps.device_factor[1] = 1.5;
  EXPECT_FALSE(find_drift(detector, steps, 200, 260, 0.06));
  EXPECT_EQ(detector.excluded(), 30);
  // Windows that are found to be disturbed afterwards are left out as well.
  ASSERT_TRUE(find_drift(detector, steps, 260, 276, 0.05));
  detector.exclude_outside();
  EXPECT_EQ(detector.excluded(), 38);
  steps.device_factor[1] = 1;
  EXPECT_FALSE(find_drift(detector, steps, 276, 600));
}

// The score goes 1 2 3 4 5 4 5 6 7 8.
TEST(DriftDetector, LeavesOutAllWindowsThatGaveADisturbedDrift) {
  DriftDetector detector = begun();
  Steps steps(13, 0.01);
  ASSERT_FALSE(find_drift(detector, steps, 0, 200));
  steps.device_factor[1] = 1.5;
  ASSERT_FALSE(find_drift(detector, steps, 200, 210));
  steps.device_factor[1] = 1;
  ASSERT_FALSE(find_drift(detector, steps, 210, 212));
  steps.device_factor[1] = 1.5;
  const auto found = find_drift(detector, steps, 212, 240);
  ASSERT_TRUE(found);
  ASSERT_EQ(found->first, 219);
  EXPECT_EQ(detector.counted(), 110);
  detector.exclude_outside();
  EXPECT_EQ(detector.counted(), 100);
  EXPECT_EQ(detector.excluded(), 10);
}

TEST(DriftDetector, LeavesOutAsManyWindowsAsADriftAfterABurstTook) {
  DriftDetector detector = begun();
  Steps steps(14, 0.01);
  ASSERT_FALSE(find_drift(detector, steps, 0, 200));
  const Step disturbed = pass_burst(detector, steps, 200, 7);
  steps.device_factor[1] = 1.5;
  ASSERT_TRUE(find_drift(detector, steps, disturbed, disturbed + 28));
  EXPECT_EQ(detector.counted(), 128);
  detector.exclude_outside();
  EXPECT_EQ(detector.counted(), 114);
  EXPECT_EQ(detector.excluded(), 14);
}

// A window of one step has layers in every second step only: eight of them are 15 windows.
TEST(DriftDetector, LeavesOutTheWindowsBetweenThoseThatALayerWasReadIn) {
  DriftDetector detector({.window_steps = 1, .false_alarms = 0.001, .run_steps = 2'000});
  detector.begin(two_devices());
  Steps steps(15, 0.01);
  bool is_told = false;
  for (Step step = 0; step < 115 && !is_told; ++step) {
    if (step == 100) steps.layer_factor[3] = 1.8;
    StepCosts costs = steps.take();
    if (step % 2 == 1) costs.layers.clear();
    is_told = detector.add(costs, 0).has_value();
    ASSERT_EQ(is_told, step == 114);
  }
  detector.exclude_outside();
  EXPECT_EQ(detector.counted(), 100);
  EXPECT_EQ(detector.excluded(), 15);
}

// The rule grants a thousandth of runs without drift. Of little noise it is the least drift that
// counts, of much the threshold.
TEST(DriftDetector, TellsADriftInAtMostOneOfAThousandRunsWithout) {
  for (const double noise : {0.03, 0.3}) {
    int told = 0;
    for (std::uint64_t seed = 1; seed <= 1'000; ++seed) {
      DriftDetector detector = begun();
      Steps steps(seed, noise);
      told += find_drift(detector, steps, 0, kRule.run_steps) ? 1 : 0;
    }
    EXPECT_LE(told, 1) << "noise " << noise << ", seeds 1 to 1000";
  }
}

TEST(DriftDetector, HasNothingToTellOfOneDevice) {
  DriftDetector detector(kRule);
  StepCosts one{.devices = {Duration{6'000}, Duration{0}}, .layers = {}};
  detector.begin(one);
  EXPECT_EQ(detector.quantities(), 0);
  EXPECT_FALSE(detector.add(one, std::nullopt));
}

}  // namespace
}  // namespace frazil
