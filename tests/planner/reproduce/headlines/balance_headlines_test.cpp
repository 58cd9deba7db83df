// Tests the headlines of papers that balance stages against cuts timed by hand.

#include "planner/reproduce/headlines/balance_headlines.h"

#include <gtest/gtest.h>

namespace frazil {
namespace {

using std::chrono::milliseconds;

TEST(BalanceHeadlines, Gpt2HasTheMultiplyAddsOfItsShape) {
  // h = 4, s = 2, V = 10, in thousandths: attention 64 + 16, MLP 128, head 40.
  EXPECT_EQ(list_gpt_forwards(2, 4'000, 2'000, 10'000),
            (std::vector<Duration>{Duration{0}, Duration{80'000}, Duration{128'000},
                                   Duration{80'000}, Duration{128'000}, Duration{40'000}}));
}

TEST(BalanceHeadlines, ACutTakesAsLongAsItsSlowestStageDecides) {
  const ModelProfile profile = make_balance_chain(std::vector<Duration>(4, milliseconds{1}));
  validate(profile, "profile");
  const FreezeMask active = FreezeMask::all_active(4);
  // Two stages of two layers, 1F1B, two micro-batches, layer 0 without I:
  //   0: F 0-2  F 2-4   B 8-11  B 14-17
  //   1:        F 2-4 B 4-8 F 8-10 B 10-14
  EXPECT_EQ(time_cut(profile, {LayerId{2}}, active, 2), milliseconds{17});
  // Of the frozen stage, only F is left: the other does 2 + 3 twice, layer 2 without I.
  const FreezeMask half = FreezeMask::frozen_prefix(4, BlockId{1});
  EXPECT_EQ(time_cut(profile, {LayerId{2}}, half, 2), milliseconds{2 + 2 * 5});
  // Cut anew, stage 0 has three layers, of which one trains: W alone.
  //   0: F 0-3  F 3-6       B 6-7     B 9-10
  //   1:        F 3-4 B 4-6  F 6-7 B 7-9
  EXPECT_EQ(time_cut(profile, {LayerId{3}}, half, 2), milliseconds{10});
}

TEST(BalanceHeadlines, BalancingIsFasterAndNoFasterThanPublished) {
  for (const ResultRow& row : list_balance_headlines()) {
    EXPECT_GT(row.simulated, 1) << row.name;
    EXPECT_LE(row.simulated, row.published) << row.name;
    EXPECT_FALSE(row.reason.empty()) << row.name;
  }
}

}  // namespace
}  // namespace frazil
