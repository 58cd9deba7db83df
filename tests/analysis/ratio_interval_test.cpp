#include "analysis/ratio_interval.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <random>
#include <stdexcept>

namespace frazil {
namespace {

// Draws one standard normal number by the method of Box & Muller (1958), so that it is the same on
// every machine, unlike that of std::normal_distribution.
double draw_normal(std::mt19937_64& random) {
  const auto uniform = [&random] {
    return (static_cast<double>(random() >> 11U) + 0.5) / 9007199254740992.0;
  };
  const double radius = std::sqrt(-2 * std::log(uniform()));
  return radius * std::cos(2 * 3.14159265358979323846 * uniform());
}

TEST(RatioInterval, CoversTheTrueRatioInNineteenOfTwentyTrials) {
  constexpr int kTrials = 400;
  constexpr int kBlocks = 31;
  SCOPED_TRACE("seed 20240611");
  std::mt19937_64 random(20240611);
  int covered = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<double> ratios(kBlocks);
    for (double& ratio : ratios) ratio = std::exp(0.1 * draw_normal(random));  // median 1
    const RatioInterval interval =
        bootstrap_ratio(ratios, static_cast<std::uint64_t>(trial), 0.95, 500);
    if (interval.low <= 1 && 1 <= interval.high) ++covered;
  }
  EXPECT_GE(covered, kTrials * 90 / 100);
  EXPECT_LE(covered, kTrials * 99 / 100);
}

TEST(RatioInterval, OfOneBlockIsThatBlock) {
  const RatioInterval interval = bootstrap_ratio({1.25}, 1);
  EXPECT_EQ(interval.median, 1.25);
  EXPECT_EQ(interval.low, 1.25);
  EXPECT_EQ(interval.high, 1.25);
  EXPECT_EQ(interval.blocks, 1);
}

TEST(RatioInterval, HasTheMiddleOfAnEvenNumberOfBlocksAsItsMedian) {
  EXPECT_EQ(bootstrap_ratio({4, 1, 2, 3}, 1).median, 2.5);
  EXPECT_EQ(bootstrap_ratio({4, 1, 2, 3, 100}, 1).median, 3);
}

TEST(RatioInterval, IsTheSameForTheSameSeedOnly) {
  const std::vector<double> ratios = {0.9, 0.95, 1.0, 1.02, 1.1, 1.3, 0.97, 1.01};
  const RatioInterval first = bootstrap_ratio(ratios, 7, 0.95, 50);
  const RatioInterval again = bootstrap_ratio(ratios, 7, 0.95, 50);
  EXPECT_EQ(first.low, again.low);
  EXPECT_EQ(first.high, again.high);
  bool differs = false;
  for (std::uint64_t seed = 8; seed < 20; ++seed) {
    const RatioInterval other = bootstrap_ratio(ratios, seed, 0.95, 50);
    differs = differs || other.low != first.low || other.high != first.high;
  }
  EXPECT_TRUE(differs);
}

TEST(RatioInterval, GrowsWithTheConfidenceAskedFor) {
  const std::vector<double> ratios = {0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.4, 1.5};
  const RatioInterval narrow = bootstrap_ratio(ratios, 3, 0.5);
  const RatioInterval wide = bootstrap_ratio(ratios, 3, 0.99);
  EXPECT_LT(wide.low, narrow.low);
  EXPECT_GT(wide.high, narrow.high);
}

TEST(RatioInterval, RefusesWhatIsNoRatio) {
  EXPECT_THROW(bootstrap_ratio({}, 1), std::logic_error);
  EXPECT_THROW(bootstrap_ratio({1, 0}, 1), std::logic_error);
  EXPECT_THROW(bootstrap_ratio({1, -1}, 1), std::logic_error);
  EXPECT_THROW(bootstrap_ratio({1, std::nan("")}, 1), std::logic_error);
}

TEST(Judge, PassesOnlyAWholeIntervalWithinTheBar) {
  struct Case {
    double low;
    double high;
    Verdict verdict;
  };
  const std::vector<Case> cases = {
      {0.96, 1.04, Verdict::kPass},        {1 / 1.05, 1.05, Verdict::kPass},
      {0.95, 1.0, Verdict::kInconclusive}, {1.0, 1.06, Verdict::kInconclusive},
      {0.5, 2.0, Verdict::kInconclusive},  {1.06, 1.2, Verdict::kFail},
      {0.5, 0.9, Verdict::kFail},          {1.05, 1.2, Verdict::kInconclusive},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(one.low);
    SCOPED_TRACE(one.high);
    const RatioInterval interval{.median = 1, .low = one.low, .high = one.high, .blocks = 9};
    EXPECT_EQ(verdict_name(judge(interval, 0.05)), verdict_name(one.verdict));
  }
}

TEST(TrimmedMean, LeavesOutTheHighestTenth) {
  EXPECT_EQ(trimmed_mean({1000, 1, 2, 3, 4, 5, 6, 7, 8, 9}), 5);
  EXPECT_EQ(trimmed_mean({3, 1, 5}), 3);  // too few to cut one
  EXPECT_EQ(trimmed_mean({1, 9}, 0.5), 1);
  EXPECT_EQ(trimmed_mean({1, 9}, 1.0), 5);
}

TEST(TrimmedMean, KeepsNineTenthsOfAnyMultipleOfTen) {
  for (std::size_t tens = 1; tens <= 100; ++tens) {
    SCOPED_TRACE(tens);
    std::vector<double> samples(10 * tens);
    std::iota(samples.begin(), samples.end(), 1.0);
    const double kept = 9.0 * static_cast<double>(tens);
    EXPECT_EQ(trimmed_mean(samples), (kept + 1) / 2);  // mean of 1..kept
  }
}

}  // namespace
}  // namespace frazil
