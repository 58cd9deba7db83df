#include "analysis/ablation/time_to_come.h"

#include <gtest/gtest.h>

#include "tests/analysis/ablation/planted_runs.h"

namespace frazil {
namespace {

TEST(TimeToCome, TakesTheSameArmBeforeThePredictionBeforeAnyArm) {
  const std::vector<ArmSeed> pending{{Arm::kAll, 3}, {Arm::kUnfrozen, 3}, {Arm::kShorter, 3}};
  EXPECT_EQ(tell_time(estimate_time(pending, {}, {})), "the first will show how long they take");
  PredictedRuns predicted;
  predicted[Arm::kAll].times.parts.steps = std::chrono::seconds(100);
  EXPECT_EQ(
      tell_time(estimate_time(pending, {}, predicted)),
      "about 1 min 40 s (1 as predicted, without start and evaluation) and 2 of unknown length");
  PlantedRuns planted;  // each program takes a second more than its wall time
  planted.add(Arm::kUnfrozen, 1, 0.5, 9);
  planted.add(Arm::kUnfrozen, 2, 0.5, 19);
  EXPECT_EQ(tell_time(estimate_time(pending, planted.runs().results, predicted)),
            "about 2 min 10 s (1 as predicted, without start and evaluation)");
  planted.add(Arm::kAll, 1, 0.5, 3599);
  EXPECT_EQ(tell_time(estimate_time({{Arm::kAll, 2}}, planted.runs().results, predicted)),
            "about 1 h 0 min");
  EXPECT_EQ(tell_time(estimate_time({}, {}, {})), "about 0 s");
}

}  // namespace
}  // namespace frazil
