#include "planner/drift/drift_detector.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <fstream>
#include <random>
#include <sstream>
#include <string>

namespace frazil {
namespace {

constexpr DriftRule kRule{.window_steps = 3, .false_alarms = 0.001, .run_steps = 2'000};

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

// Quantiles of Student's distribution as printed tables have them.
TEST(DriftDetector, HasTheThresholdThatFollowsFromTheStatedRate) {
  const DriftRule one{.window_steps = 6, .false_alarms = 0.05, .run_steps = 6};
  EXPECT_NEAR(find_drift_threshold(one, 1, 11), 2.228139, 1e-5);
  EXPECT_NEAR(find_drift_threshold({6, 0.01, 6}, 1, 8), 3.499483, 1e-5);
  // Five quantities in two windows of the run: a tenth of the level each.
  EXPECT_DOUBLE_EQ(find_drift_threshold({6, 0.5, 12}, 5, 11), find_drift_threshold(one, 1, 11));
}

TEST(DriftDetector, TellsASlowerDeviceWithinTwentySteps) {
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
    EXPECT_LT(found->second.least.devices[1], 1.3);
    EXPECT_EQ(found->second.what.substr(0, 16), "device 1 takes 1");
  }
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

// A sixth one does not follow.
TEST(DriftDetector, TellsNothingOfFiveBadWindows) {
  DriftDetector detector = begun();
  Steps steps(9, 0.01);
  ASSERT_FALSE(find_drift(detector, steps, 0, 198));
  steps.device_factor[1] = 2;
  EXPECT_FALSE(find_drift(detector, steps, 198, 213));
  steps.device_factor[1] = 1;
  EXPECT_FALSE(find_drift(detector, steps, 213, 600));
}

TEST(DriftDetector, LeavesOutAndCountsWindowsBesideForeignLoad) {
  DriftDetector detector = begun();
  Steps steps(11, 0.01);
  ASSERT_FALSE(find_drift(detector, steps, 0, 198));
  steps.device_factor[1] = 1.5;
  EXPECT_FALSE(find_drift(detector, steps, 198, 258, 0.06));
  EXPECT_EQ(detector.excluded(), 20);
  // Windows that are found to be disturbed afterwards are left out as well.
  ASSERT_TRUE(find_drift(detector, steps, 258, 276, 0.05));
  detector.exclude_outside();
  EXPECT_EQ(detector.excluded(), 26);
  steps.device_factor[1] = 1;
  EXPECT_FALSE(find_drift(detector, steps, 276, 600));
}

// The rule grants a thousandth of runs without drift; of so many runs one is expected to be told at
// most, and windows beside each other make it fewer.
TEST(DriftDetector, TellsADriftInAtMostOneOfAThousandRunsWithout) {
  int told = 0;
  for (std::uint64_t seed = 1; seed <= 1'000; ++seed) {
    DriftDetector detector = begun();
    Steps steps(seed, 0.03);
    told += find_drift(detector, steps, 0, kRule.run_steps) ? 1 : 0;
  }
  EXPECT_LE(told, 1);
}

// The costs of steps of a run without drift, as bench_drift_run --record wrote them: the load by
// other programs, the time of each device, and in every second step that of each layer. The first
// line has the costs that were predicted.
struct RecordedStep {
  double foreign_cores = 0;
  StepCosts costs;
};

std::vector<RecordedStep> read_recorded() {
  const std::string path =
      std::string(FRAZIL_SOURCE_FOLDER) + "/tests/planner/drift/recorded_steps.csv";
  std::ifstream file(path);
  std::vector<RecordedStep> steps;
  for (std::string line; std::getline(file, line);) {
    std::istringstream cells(line);
    std::string cell;
    std::getline(cells, cell, ',');  // the step
    std::getline(cells, cell, ',');
    RecordedStep& step = steps.emplace_back();
    step.foreign_cores = std::stod(cell);
    while (std::getline(cells, cell, ',')) {
      int device = 0;
      int layer = 0;
      long long time = 0;
      if (std::sscanf(cell.c_str(), "%d:%d:%lld", &device, &layer, &time) == 3) {
        step.costs.layers.push_back({DeviceId{device}, LayerId{layer}, Duration{time}});
      } else {
        step.costs.devices.emplace_back(std::stoll(cell));
      }
    }
  }
  return steps;
}

// Runs are drawn from the recorded steps, 60 in a row at a time: the noise of neighbouring steps is
// not independent, as the rule has it, but that of the machine.
TEST(DriftDetector, TellsADriftInAtMostOneOfAThousandRunsOfRecordedNoise) {
  constexpr std::size_t kRow = 60;
  const std::vector<RecordedStep> recorded = read_recorded();
  ASSERT_GT(recorded.size(), 2 * kRow);
  int told = 0;
  int excluded = 0;
  for (std::uint64_t seed = 1; seed <= 1'000; ++seed) {
    std::mt19937_64 random(seed);
    DriftDetector detector(kRule);
    detector.begin(recorded.front().costs);
    bool tells = false;
    for (Step step = 0; step < kRule.run_steps && !tells;) {
      const std::size_t rows = (recorded.size() - 1 - kRow) / 2;
      std::size_t at = 1 + 2 * (random() % rows);  // layers are measured in every second step
      for (std::size_t i = 0; i < kRow && step < kRule.run_steps; ++i, ++step, ++at) {
        const RecordedStep& taken = recorded[at];
        tells = tells || detector.add(taken.costs, taken.foreign_cores).has_value();
      }
    }
    told += tells ? 1 : 0;
    excluded += detector.excluded();
  }
  EXPECT_LE(told, 1) << excluded << " of 667000 windows were left out";
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
