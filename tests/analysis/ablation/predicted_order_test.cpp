#include "analysis/ablation/predicted_order.h"

#include <gtest/gtest.h>

#include "tests/analysis/ablation/planted_runs.h"

namespace frazil {
namespace {

PredictedRun predict(Arm arm, int seconds) {
  PredictedRun run{.arm = arm, .reason = {}, .walk = {}, .times = {}};
  run.times.parts.steps = std::chrono::seconds(seconds);
  return run;
}

// `all` takes half of what `unfrozen` does, give or take a hundredth, and `pipe` what `all` does,
// give or take a tenth.
TEST(PredictedOrder, CountsPairsThatDifferByMoreThanTheNoise) {
  PlantedRuns planted;
  for (const std::int64_t seed : {1, 2, 3, 4}) {
    const double sign = seed % 2 == 0 ? 1 : -1;
    planted.add(Arm::kUnfrozen, seed, 0.5, 10);
    planted.add(Arm::kAll, seed, 0.5, 5 + 0.05 * sign);
    planted.add(Arm::kAutoPipe, seed, 0.5, 5 - 0.5 * sign);
  }
  PredictedRuns predicted{{Arm::kUnfrozen, predict(Arm::kUnfrozen, 8)},
                          {Arm::kAutoPipe, predict(Arm::kAutoPipe, 7)},
                          {Arm::kAll, predict(Arm::kAll, 6)}};
  PredictedOrder order = compare_order(planted.runs().results, predicted);
  EXPECT_EQ(order.compared, 3);
  EXPECT_EQ(order.pairs, 2) << "all and pipe lie within the noise";
  EXPECT_EQ(order.right, 2);
  predicted[Arm::kAll] = predict(Arm::kAll, 8);
  order = compare_order(planted.runs().results, predicted);
  EXPECT_EQ(order.right, 1) << "as long is not less";
  EXPECT_EQ(order.wrong, std::vector<std::string>{"all, unfrozen"});
  predicted.erase(Arm::kUnfrozen);
  EXPECT_EQ(compare_order(planted.runs().results, predicted).pairs, 0);
}

// `shorter` lies far from both, and its prediction is of the wrong order with both.
TEST(PredictedOrder, LeavesOutTheControlWhoseLengthWasMeasured) {
  PlantedRuns planted;
  for (const std::int64_t seed : {1, 2, 3}) {
    planted.add(Arm::kUnfrozen, seed, 0.5, 10);
    planted.add(Arm::kAll, seed, 0.5, 5);
    planted.add(Arm::kShorter, seed, 0.5, 7);
  }
  const PredictedRuns predicted{{Arm::kUnfrozen, predict(Arm::kUnfrozen, 8)},
                                {Arm::kAll, predict(Arm::kAll, 6)},
                                {Arm::kShorter, predict(Arm::kShorter, 20)}};
  const PredictedOrder order = compare_order(planted.runs().results, predicted);
  EXPECT_EQ(order.compared, 1);
  EXPECT_EQ(order.pairs, 1);
  EXPECT_EQ(order.right, 1);
  EXPECT_TRUE(order.wrong.empty());
}

TEST(PredictedOrder, NeedsTwoSeeds) {
  PlantedRuns planted;
  planted.add(Arm::kUnfrozen, 1, 0.5, 10);
  planted.add(Arm::kAll, 1, 0.5, 5);
  const PredictedRuns predicted{{Arm::kUnfrozen, predict(Arm::kUnfrozen, 8)},
                                {Arm::kAll, predict(Arm::kAll, 6)}};
  EXPECT_EQ(compare_order(planted.runs().results, predicted).compared, 0);
}

}  // namespace
}  // namespace frazil
