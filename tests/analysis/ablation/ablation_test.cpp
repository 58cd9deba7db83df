// Planted ablations: what their verdicts have to be is known from how they were made.

#include "analysis/ablation/ablation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "analysis/ablation/ablation_answer.h"
#include "analysis/ablation/ablation_notes.h"
#include "tests/analysis/ablation/planted_runs.h"

namespace frazil {
namespace {

const ArmRow& row_of(const Ablation& ablation, Arm arm) {
  const auto row = std::find_if(ablation.rows.begin(), ablation.rows.end(),
                                [arm](const ArmRow& each) { return each.arm == arm; });
  EXPECT_NE(row, ablation.rows.end());
  return *row;
}

Ablation sum_up_planted(const PlantedRuns& runs, double margin = 1) {
  return sum_up(runs.request(), runs.runs(), margin, std::nullopt);
}

TEST(Ablation, OfHarmlessFreezingIsNonInferiorAndBetterThanTheControl) {
  PlantedRuns planted;
  for (const std::int64_t seed : {1, 2, 3, 4}) {
    const double luck = 0.01 * static_cast<double>(seed);
    planted.add(Arm::kUnfrozen, seed, 0.80 + luck, 10);
    planted.add(Arm::kAll, seed, 0.80 + luck + (seed % 2 == 0 ? 0.001 : -0.001), 5);
    planted.add(Arm::kShorter, seed, 0.70 + luck, 5);
  }
  const Ablation ablation = sum_up_planted(planted);
  const ArmRow& all = row_of(ablation, Arm::kAll);
  EXPECT_EQ(all.verdict, NonInferiority::kShown);
  EXPECT_TRUE(all.beats_shorter.value());
  EXPECT_NEAR(all.speed->mean, 2, 1e-9);
  EXPECT_NEAR(all.speed->interval->low, 2, 1e-9);
  EXPECT_EQ(row_of(ablation, Arm::kShorter).verdict, NonInferiority::kInferior);
  EXPECT_EQ(ablation.gain, FreezingGain::kSomething);
  EXPECT_NE(to_text(ablation).find("freezing brought something here: all is non-inferior"),
            std::string::npos);
  EXPECT_NE(to_text(ablation).find("non-inferior, better than shorter"), std::string::npos);
}

TEST(Ablation, OfHarmfulFreezingIsInferior) {
  PlantedRuns planted;
  for (const std::int64_t seed : {1, 2, 3, 4}) {
    planted.add(Arm::kUnfrozen, seed, 0.90, 10);
    planted.add(Arm::kAll, seed, 0.87 + 0.001 * static_cast<double>(seed), 5);
    planted.add(Arm::kShorter, seed, 0.88, 5);
  }
  const Ablation ablation = sum_up_planted(planted);
  EXPECT_EQ(row_of(ablation, Arm::kAll).verdict, NonInferiority::kInferior);
  EXPECT_FALSE(row_of(ablation, Arm::kAll).beats_shorter.value());
  EXPECT_EQ(ablation.gain, FreezingGain::kNotShown);
  EXPECT_NE(to_text(ablation).find("not shown that freezing brings anything here: all is inferior "
                                   "by more than the margin (margin 1 point), and not shown to be "
                                   "better than shorter"),
            std::string::npos);
  // What is harmful to within one point is harmless to within five.
  EXPECT_EQ(row_of(sum_up_planted(planted, 5), Arm::kAll).verdict, NonInferiority::kShown);
}

TEST(Ablation, WhoseControlTookAnotherTimeSaysSo) {
  const auto told = [](double seconds_of_shorter) {
    PlantedRuns planted;
    for (const std::int64_t seed : {1, 2, 3, 4}) {
      planted.add(Arm::kUnfrozen, seed, 0.90, 10);
      planted.add(Arm::kAll, seed, 0.87 + 0.001 * static_cast<double>(seed), 5);
      planted.add(Arm::kShorter, seed, 0.88, seconds_of_shorter);
    }
    return to_text(sum_up_planted(planted));
  };
  EXPECT_NE(told(5.2).find("which trains unfrozen for as long\n"), std::string::npos) << told(5.2);
  EXPECT_NE(told(4).find("which trains unfrozen and was to take as long, but took 20 % less: the "
                         "comparison is not one of equal time\n"),
            std::string::npos)
      << told(4);
}

TEST(Ablation, NamesARivalOfUnfrozenOnlyWhereMoreThanNoiseMakesItFaster) {
  const auto told = [](std::initializer_list<double> seconds) {
    PlantedRuns planted;
    std::int64_t seed = 0;
    for (const double each : seconds) {
      planted.add(Arm::kUnfrozen, ++seed, 0.90, 10);
      planted.add(Arm::kDataParallel, seed, 0.90, each);
    }
    return to_text(sum_up_planted(planted)).find("measured to be faster: data-parallel") !=
           std::string::npos;
  };
  EXPECT_TRUE(told({9, 9.1, 8.9}));
  EXPECT_FALSE(told({9, 10.2, 9.7}));
  EXPECT_FALSE(told({9})) << "one seed has no interval";
}

TEST(Ablation, WhoseControlIsAsGoodSaysThatFreezingBroughtNothing) {
  PlantedRuns planted;
  for (const std::int64_t seed : {1, 2, 3}) {
    planted.add(Arm::kUnfrozen, seed, 0.90, 10);
    planted.add(Arm::kAll, seed, 0.90, 5);
    planted.add(Arm::kShorter, seed, 0.90, 5);
  }
  const Ablation ablation = sum_up_planted(planted);
  EXPECT_EQ(ablation.gain, FreezingGain::kNothing);
  EXPECT_NE(to_text(ablation).find("freezing brought nothing here"), std::string::npos);
  const auto answer = nlohmann::json::parse(to_json(ablation));
  EXPECT_EQ(answer["freezing_brought"], "nothing");
  EXPECT_FALSE(row_of(ablation, Arm::kAll).beats_shorter.value());
}

TEST(Ablation, OfOneSeedHasNoVerdictAndNoInterval) {
  PlantedRuns planted;
  planted.add(Arm::kUnfrozen, 7, 0.90, 10);
  planted.add(Arm::kAll, 7, 0.95, 5);
  const Ablation ablation = sum_up_planted(planted);
  const std::string text = to_text(ablation);
  EXPECT_NE(text.find("one seed: no verdict"), std::string::npos) << text;
  const auto all = nlohmann::json::parse(to_json(ablation))["arms"][1];
  EXPECT_EQ(all["arm"], "all");
  EXPECT_TRUE(nlohmann::json::parse(to_json(ablation))["freezing_brought"].is_null());
  EXPECT_FALSE(all["speed_over_unfrozen"].contains("low"));
  EXPECT_FALSE(all["difference_to_unfrozen"].contains("low_points"));
}

TEST(Ablation, NamesTheArmsThatEndedWithTheWeightsOfAll) {
  PlantedRuns planted;
  for (const std::int64_t seed : {1, 2}) {
    planted.add(Arm::kUnfrozen, seed, 0.5, 10);
    planted.end_with("other");
    planted.add(Arm::kFreezeOnly, seed, 0.5, 8);
    planted.add(Arm::kAutoPipe, seed, 0.5, 8);
    planted.end_with(seed == 1 ? "00ff" : "other");
    planted.add(Arm::kAll, seed, 0.5, 5);
  }
  const std::string text = to_text(sum_up_planted(planted));
  EXPECT_NE(text.find("with the weights of all under every seed, bit for bit, ended: freeze\n"),
            std::string::npos)
      << text;
}

// -2, 0 and 2 points: the interval is (-5, 5).
TEST(Ablation, OfAPolicyOfWhichLittleIsKnownShowsNothing) {
  PlantedRuns planted;
  for (const std::int64_t seed : {1, 2, 3}) {
    planted.add(Arm::kUnfrozen, seed, 0.90, 10);
    planted.add(Arm::kAll, seed, 0.86 + 0.02 * static_cast<double>(seed), 5);
  }
  EXPECT_EQ(row_of(sum_up_planted(planted), Arm::kAll).verdict, NonInferiority::kNotShown);
}

TEST(Ablation, SaysWhereNothingFrozeAndNothingWasCached) {
  PlantedRuns planted;
  planted.add(Arm::kUnfrozen, 1, 0.9, 10);
  planted.add(Arm::kAutoPipeCache, 1, 0.9, 10);
  planted.add(Arm::kAll, 1, 0.9, 10);
  std::string text = to_text(sum_up_planted(planted));
  EXPECT_NE(text.find("the policy has frozen nothing: "), std::string::npos) << text;
  EXPECT_NE(text.find("nothing was cached, since no cache paid, by: pipe-cache, all\n"),
            std::string::npos)
      << text;
  planted.freeze_last_and_cache(7);
  text = to_text(sum_up_planted(planted));
  EXPECT_EQ(text.find("the policy has frozen nothing"), std::string::npos) << text;
  EXPECT_NE(text.find("by: pipe-cache\n"), std::string::npos) << text;
}

TEST(Ablation, PairsSeedsThatBothArmsHave) {
  PlantedRuns planted;
  for (const std::int64_t seed : {1, 2, 3}) planted.add(Arm::kUnfrozen, seed, 0.5, 10);
  planted.add(Arm::kAll, 2, 0.6, 5);
  planted.add(Arm::kAll, 3, 0.6, 5);
  const Ablation ablation = sum_up_planted(planted);
  EXPECT_EQ(row_of(ablation, Arm::kAll).difference->pairs, 2);
  EXPECT_NEAR(row_of(ablation, Arm::kAll).difference->mean, 10, 1e-9);
}

TEST(Ablation, LaysPredictionsBesideWhatWasMeasured) {
  PlantedRuns planted;
  for (const std::int64_t seed : {1, 2}) {
    planted.add(Arm::kUnfrozen, seed, 0.5, 10);
    planted.add(Arm::kAll, seed, 0.5, 5);
  }
  AblationRuns runs = planted.runs();
  runs.predicted[Arm::kUnfrozen].times.parts.steps = std::chrono::seconds(9);
  runs.predicted[Arm::kAll].times.parts.steps = std::chrono::seconds(6);
  const Ablation ablation = sum_up(planted.request(), std::move(runs), 1, std::nullopt);
  const ArmRow& all = row_of(ablation, Arm::kAll);
  EXPECT_DOUBLE_EQ(all.predicted_speed.value(), 1.5);
  EXPECT_DOUBLE_EQ(all.prediction_error_percent.value(), 20);
  EXPECT_NE(to_text(ablation).find("1.50x"), std::string::npos);
  EXPECT_NE(to_text(ablation).find("+20.0%"), std::string::npos);
}

// 10 and 10.1 s, give or take half a second.
TEST(Ablation, SaysNothingOfTheOrderOfArmsWithinTheNoise) {
  PlantedRuns planted;
  for (const std::int64_t seed : {1, 2, 3, 4}) {
    planted.add(Arm::kUnfrozen, seed, 0.5, 10 + (seed % 2 == 0 ? 0.5 : -0.5));
    planted.add(Arm::kAll, seed, 0.5, 10.1 - (seed % 2 == 0 ? 0.5 : -0.5));
  }
  AblationRuns runs = planted.runs();
  runs.predicted[Arm::kUnfrozen].times.parts.steps = std::chrono::seconds(9);
  runs.predicted[Arm::kAll].times.parts.steps = std::chrono::seconds(6);
  const std::string text = to_text(sum_up(planted.request(), std::move(runs), 1, std::nullopt));
  EXPECT_NE(text.find("0 of 1 pairs of arms differ by more than the noise: nothing is said of "
                      "their order\n"),
            std::string::npos)
      << text;
  EXPECT_EQ(text.find("in that order"), std::string::npos) << text;
}

TEST(Ablation, SaysNoErrorOfTheControlWhoseLengthWasMeasured) {
  PlantedRuns planted;
  for (const std::int64_t seed : {1, 2}) {
    planted.add(Arm::kUnfrozen, seed, 0.5, 10);
    planted.add(Arm::kAll, seed, 0.5, 5);
    planted.add(Arm::kShorter, seed, 0.5, 5);
  }
  AblationRuns runs = planted.runs();
  for (const Arm arm : {Arm::kUnfrozen, Arm::kAll, Arm::kShorter}) {
    runs.predicted[arm].times.parts.steps = std::chrono::seconds(7);
  }
  const Ablation ablation = sum_up(planted.request(), std::move(runs), 1, std::nullopt);
  const ArmRow& control = row_of(ablation, Arm::kShorter);
  EXPECT_TRUE(control.predicted.has_value());
  EXPECT_FALSE(control.prediction_error_percent.has_value());
  EXPECT_FALSE(control.predicted_speed.has_value());
  EXPECT_TRUE(row_of(ablation, Arm::kAll).prediction_error_percent.has_value());
  EXPECT_EQ(ablation.order.compared, 1);
}

TEST(Ablation, TellsRunsOfSeveralVersionsApart) {
  PlantedRuns planted;
  planted.add(Arm::kUnfrozen, 1, 0.5, 10);
  planted.add(Arm::kUnfrozen, 2, 0.5, 10);
  const std::string words = "runs of several versions of Frazil";
  EXPECT_EQ(to_text(sum_up_planted(planted)).find(words), std::string::npos) << "both unknown";
  planted.make_last_by("0.4.0");
  planted.add(Arm::kAll, 1, 0.5, 5);
  planted.make_last_by("0.4.0");
  const std::string text = to_text(sum_up_planted(planted));
  EXPECT_NE(text.find(words + " stand beside each other: 0.4.0 (2 runs), an unknown version (1 "
                              "run)\n"),
            std::string::npos)
      << text;
}

TEST(Ablation, NamesArmsThatDoNotFitAndRunsThatWereDisturbed) {
  PlantedRuns planted;
  for (const std::int64_t seed : {1, 2}) planted.add(Arm::kUnfrozen, seed, 0.5, 10);
  planted.disturb_last(0.2);
  AblationRequest request = planted.request();
  request.arms.push_back(Arm::kDataParallel);
  AblationRuns runs = planted.runs();
  runs.unfit[Arm::kDataParallel] = "device 0 lacks 3 MiB";
  const Ablation ablation = sum_up(request, std::move(runs), 1, std::nullopt);
  const std::string text = to_text(ablation);
  EXPECT_NE(text.find("data-parallel does not fit: device 0 lacks 3 MiB"), std::string::npos);
  EXPECT_NE(text.find("beside 1 of 2 runs"), std::string::npos) << text;
  EXPECT_NE(text.find("unfrozen with seed 2 (0.20)"), std::string::npos) << text;
  EXPECT_EQ(row_of(ablation, Arm::kUnfrozen).disturbed, (std::vector<std::int64_t>{2}));
}

}  // namespace
}  // namespace frazil
