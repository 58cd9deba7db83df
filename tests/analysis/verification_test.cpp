// Tests the verdict of a verification on invented ratios, so that no machine's speed decides it.

#include "analysis/verification.h"

#include <gtest/gtest.h>

#include <random>

namespace frazil {
namespace {

// Draws `blocks` ratios around `centre`, at most 4 % away.
std::vector<double> around(double centre, int blocks, std::uint64_t seed = 1) {
  std::mt19937_64 random(seed);
  std::vector<double> ratios;
  for (int i = 0; i < blocks; ++i) {
    const double noise = static_cast<double>(random() % 2001) / 1000.0 - 1;  // -1 .. 1
    ratios.push_back(centre * (1 + 0.04 * noise));
  }
  return ratios;
}

// Makes ratios so far apart that their interval covers the bar.
std::vector<double> scattered(int blocks) {
  std::vector<double> ratios;
  for (int i = 0; i < blocks; ++i) ratios.push_back(i % 2 == 0 ? 0.7 : 1.4);
  return ratios;
}

Conclusion conclude_of(std::vector<BlockRatios> compared, int blocks = 20) {
  return conclude(compared, {.bar = 0.1, .seed = 7, .blocks = blocks});
}

TEST(Verification, PassesWhereEveryRatioIsNearOne) {
  const Conclusion conclusion = conclude_of({{"step", around(1, 20)},
                                             {"layer 0", around(0.97, 20, 2)},
                                             {"layer 1", around(1.03, 20, 3)}});
  EXPECT_EQ(conclusion.verdict, Verdict::kPass);
  ASSERT_EQ(conclusion.ratios.size(), 3U);
  EXPECT_EQ(conclusion.ratios[1].name, "layer 0");
  EXPECT_EQ(conclusion.ratios[1].ratio.blocks, 20);
}

TEST(Verification, FailsWithOneLayerAFifthSlowerAndSaysWhich) {
  const Conclusion conclusion = conclude_of({{"step", around(0.98, 20)},
                                             {"layer 0", around(1, 20, 2)},
                                             {"layer 1", around(1 / 1.2, 20, 3)},
                                             {"layer 2", around(1, 20, 4)}});
  EXPECT_EQ(conclusion.verdict, Verdict::kFail);
  for (const VerifiedRatio& row : conclusion.ratios) {
    EXPECT_EQ(row.verdict, row.name == "layer 1" ? Verdict::kFail : Verdict::kPass) << row.name;
  }
}

TEST(Verification, FailsWhereALayerGotFasterToo) {
  EXPECT_EQ(conclude_of({{"step", around(1.25, 20)}}).verdict, Verdict::kFail);
}

TEST(Verification, LeavesOpenWhatTheIntervalDoesNotDecide) {
  const Conclusion conclusion = conclude_of({{"step", around(1, 20)}, {"layer 0", scattered(20)}});
  EXPECT_EQ(conclusion.ratios[0].verdict, Verdict::kPass);
  EXPECT_EQ(conclusion.ratios[1].verdict, Verdict::kInconclusive);
  EXPECT_EQ(conclusion.verdict, Verdict::kInconclusive);
  EXPECT_EQ(conclusion.reason,
            "measured too unsteadily: intervals lie on both sides of the bar of 10 %, of layer 0");
  EXPECT_EQ(tell_verdict(Verdict::kInconclusive, "why"), "INCONCLUSIVE: why\n");
  EXPECT_EQ(tell_verdict(Verdict::kPass, ""), "PASS\n");
}

TEST(Verification, AFailureOutweighsWhatIsOpen) {
  EXPECT_EQ(conclude_of({{"step", scattered(20)}, {"layer 0", around(0.8, 20)}}).verdict,
            Verdict::kFail);
}

TEST(Verification, DecidesNothingOnFewerThanSixBlocksOrHalfOfThem) {
  EXPECT_EQ(conclude_of({{"step", around(1, 5)}}, 5).verdict, Verdict::kInconclusive);
  EXPECT_EQ(conclude_of({{"step", around(1, 6)}}, 6).verdict, Verdict::kPass);
  EXPECT_EQ(conclude_of({{"step", around(0.8, 9)}}, 20).verdict, Verdict::kInconclusive);
  EXPECT_EQ(conclude_of({{"step", around(0.8, 9)}}, 20).reason,
            "9 of 20 blocks count, and 10 are needed");
  EXPECT_EQ(conclude_of({{"step", around(0.8, 10)}}, 20).reason, "");
  EXPECT_EQ(conclude_of({{"step", around(0.8, 10)}}, 20).verdict, Verdict::kFail);
}

TEST(Verification, LeavesOutLayersWithoutAnyBlock) {
  const Conclusion conclusion = conclude_of({{"step", around(1, 20)}, {"frozen", {}}});
  EXPECT_EQ(conclusion.ratios.size(), 1U);
  EXPECT_EQ(conclusion.verdict, Verdict::kPass);
  EXPECT_EQ(conclude_of({}).verdict, Verdict::kInconclusive);
}

TEST(Verification, WidensTheIntervalsWithTheNumberOfThingsCompared) {
  std::vector<BlockRatios> compared{{"step", around(1, 20)}};
  const RatioInterval alone = conclude_of(compared).ratios.front().ratio;
  for (int i = 0; i < 30; ++i) compared.push_back({"layer", around(1, 20, 100)});
  const RatioInterval among = conclude_of(compared).ratios.front().ratio;
  EXPECT_LE(among.low, alone.low);
  EXPECT_GE(among.high, alone.high);
  EXPECT_GT(among.high - among.low, alone.high - alone.low);
}

}  // namespace
}  // namespace frazil
