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
      "about 3 min 20 s (2 as predicted, without start and evaluation) and 1 of unknown length")
      << "shorter takes the time of all";
  predicted[Arm::kUnfrozen].times.parts.steps = std::chrono::seconds(200);
  EXPECT_EQ(tell_time(estimate_time(pending, {}, predicted)),
            "about 6 min 40 s (3 as predicted, without start and evaluation)");
  PlantedRuns planted;  // each program takes a second more than its wall time
  planted.add(Arm::kUnfrozen, 1, 0.5, 9);
  planted.add(Arm::kUnfrozen, 2, 0.5, 19);
  EXPECT_EQ(tell_time(estimate_time(pending, planted.runs().results, predicted)),
            "about 3 min 35 s (2 as predicted, without start and evaluation)");
  planted.add(Arm::kAll, 1, 0.5, 3599);
  EXPECT_EQ(tell_time(estimate_time({{Arm::kAll, 2}}, planted.runs().results, predicted)),
            "about 1 h 0 min");
  EXPECT_EQ(tell_time(estimate_time({}, {}, {})), "about 0 s");
}

}  // namespace
}  // namespace frazil
