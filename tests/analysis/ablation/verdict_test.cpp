#include "analysis/ablation/verdict.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace frazil {
namespace {

// Two tables of Student's t, as printed in every textbook (Abramowitz & Stegun, table 26.10).
TEST(Verdict, QuantilesAreThoseOfPublishedTables) {
  struct Row {
    int degrees;
    double one_sided;  // 0.95
    double two_sided;  // 0.975
  };
  for (const Row& row : {Row{1, 6.314, 12.706},
                         {2, 2.920, 4.303},
                         {3, 2.353, 3.182},
                         {5, 2.015, 2.571},
                         {7, 1.895, 2.365},
                         {15, 1.753, 2.131},
                         {30, 1.697, 2.042}}) {
    EXPECT_NEAR(student_quantile(0.95, row.degrees), row.one_sided, 5e-4) << row.degrees;
    EXPECT_NEAR(student_quantile(0.975, row.degrees), row.two_sided, 6e-4) << row.degrees;
  }
}

// By hand: mean 0.25; squares 0.5625 + 0.0625 + 0.0625 + 0.5625 = 1.25; s = sqrt(1.25 / 3) =
// 0.645497; s / sqrt(4) = 0.322749; times 2.353363 and 3.182446.
TEST(Verdict, BoundsAreThoseReckonedByHand) {
  const std::vector<double> differences{-0.5, 0.0, 0.5, 1.0};
  const MeanEstimate estimate = estimate_mean(differences);
  EXPECT_EQ(estimate.pairs, 4);
  EXPECT_DOUBLE_EQ(estimate.mean, 0.25);
  EXPECT_NEAR(estimate.deviation, 0.645497, 1e-6);
  ASSERT_TRUE(estimate.bounds.has_value());
  EXPECT_NEAR(estimate.bounds->at_least, -0.509545, 1e-5);
  EXPECT_NEAR(estimate.bounds->low, -0.777132, 1e-5);
  EXPECT_NEAR(estimate.bounds->high, 1.277132, 1e-5);
}

// By hand: logarithms ln 2 and ln 8, mean ln 4; s / sqrt(2) = ln(8 / 2) / 2 = ln 2; times 12.7062.
TEST(Verdict, RatiosHaveAGeometricMeanAndAnIntervalOfLogarithms) {
  const RatioEstimate estimate = estimate_ratio(std::vector<double>{2, 8});
  EXPECT_NEAR(estimate.mean, 4, 1e-12);
  ASSERT_TRUE(estimate.interval.has_value());
  EXPECT_NEAR(std::log2(estimate.interval->low), 2 - 12.7062, 1e-4);
  EXPECT_NEAR(std::log2(estimate.interval->high), 2 + 12.7062, 1e-4);
  EXPECT_FALSE(estimate_ratio(std::vector<double>{1.5}).interval.has_value());
}

TEST(Verdict, OneSeedAllowsNone) {
  const MeanEstimate one = estimate_mean(std::vector<double>{0.3});
  EXPECT_FALSE(one.bounds.has_value());
  EXPECT_EQ(judge_non_inferiority(one, 1), NonInferiority::kNoVerdict);
  EXPECT_EQ(name_of(NonInferiority::kNoVerdict), "one seed: no verdict");
  EXPECT_FALSE(is_better(one).has_value());
}

TEST(Verdict, TheBoundDecidesAndNotTheMean) {
  const MeanEstimate tight = estimate_mean(std::vector<double>{-0.4, -0.3, -0.5, -0.4});
  const MeanEstimate wide = estimate_mean(std::vector<double>{-3, 3, -3, 3});
  EXPECT_EQ(judge_non_inferiority(tight, 1), NonInferiority::kShown);
  EXPECT_EQ(judge_non_inferiority(tight, 0.45), NonInferiority::kNotShown);
  EXPECT_EQ(judge_non_inferiority(wide, 1), NonInferiority::kNotShown);
  EXPECT_FALSE(is_better(wide).value());
  EXPECT_TRUE(is_better(estimate_mean(std::vector<double>{1, 1.1, 0.9})).value());
  // A difference that never varies has a bound, its mean.
  EXPECT_EQ(judge_non_inferiority(estimate_mean(std::vector<double>{0, 0}), 0.01),
            NonInferiority::kShown);
  EXPECT_FALSE(is_better(estimate_mean(std::vector<double>{0, 0})).value());
}

// 6.18 x (s / margin)^2 by hand: 1.2^2 -> 8.90; 1.6^2 -> 15.82; 2^2 -> 24.72.
TEST(Verdict, SeedsFollowFromTheSpreadOfAPilot) {
  const auto seeds = [](double deviation, double margin) {
    const SeedCount count = count_seeds(deviation, margin);
    return std::pair(count.asked, count.planned);
  };
  EXPECT_EQ(seeds(0, 1), std::pair(8, 8));
  EXPECT_EQ(seeds(1, 1), std::pair(8, 8));
  EXPECT_EQ(seeds(1.2, 1), std::pair(9, 9));
  EXPECT_EQ(seeds(0.8, 0.5), std::pair(16, 16));
  EXPECT_EQ(seeds(2, 1), std::pair(25, 16));
  EXPECT_EQ(count_seeds(1e200, 1e-3).planned, 16);
}

TEST(Verdict, TheTestPartHasAnErrorOfItsOwn) {
  EXPECT_NEAR(test_error(0.9, 360), 1.58114, 1e-5);  // 100 sqrt(0.09 / 360)
  EXPECT_EQ(test_error(1, 10), 0);
}

// Draws normal differences with a known mean: 95 of 100 bounds lie below it, and as many intervals
// hold it. Three standard errors of 4,000 draws are 1.03 %.
TEST(Verdict, BoundsHoldTheMeanAsOftenAsTheySay) {
  const unsigned seed = 20261127;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (const int pairs : {2, 4, 12}) {
    std::normal_distribution<double> normal(-0.7, 1.3);
    int below = 0;
    int inside = 0;
    constexpr int kDraws = 4000;
    for (int draw = 0; draw < kDraws; ++draw) {
      std::vector<double> differences;
      for (int i = 0; i < pairs; ++i) differences.push_back(normal(random));
      const MeanBounds bounds = estimate_mean(differences).bounds.value();
      below += bounds.at_least < -0.7 ? 1 : 0;
      inside += bounds.low < -0.7 && -0.7 < bounds.high ? 1 : 0;
    }
    EXPECT_NEAR(static_cast<double>(below) / kDraws, 0.95, 0.0103) << pairs;
    EXPECT_NEAR(static_cast<double>(inside) / kDraws, 0.95, 0.0103) << pairs;
  }
}

}  // namespace
}  // namespace frazil
