#include "analysis/ablation/pair_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

namespace frazil {
namespace {

std::vector<Arm> every_arm() {
  std::vector<Arm> arms;
  for (const ArmFacts& facts : all_arms()) arms.push_back(facts.arm);
  return arms;
}

TEST(PairOrder, HasEveryPairOnceSeedAfterSeedAndNeedsFirst) {
  std::set<std::vector<Arm>> orders;
  std::vector<std::int64_t> seeds;
  for (std::int64_t seed = 1; seed <= 20; ++seed) seeds.push_back(seed);
  const std::vector<ArmSeed> pairs = order_pairs(every_arm(), seeds);
  ASSERT_EQ(pairs.size(), 20 * every_arm().size());
  for (std::size_t s = 0; s < seeds.size(); ++s) {
    std::vector<Arm> order;
    for (std::size_t i = 0; i < every_arm().size(); ++i) {
      const ArmSeed& pair = pairs[s * every_arm().size() + i];
      EXPECT_EQ(pair.seed, seeds[s]);
      for (const Arm need : needs_of(pair.arm)) {
        EXPECT_NE(std::find(order.begin(), order.end(), need), order.end());
      }
      order.push_back(pair.arm);
    }
    EXPECT_TRUE(std::is_permutation(order.begin(), order.end(), every_arm().begin()));
    orders.insert(order);
  }
  EXPECT_GT(orders.size(), 15U);  // seeds draw orders of their own
}

TEST(PairOrder, FollowsFromTheSeedAlone) {
  EXPECT_EQ(order_pairs(every_arm(), {4, 9}), order_pairs(every_arm(), {4, 9}));
  const std::vector<ArmSeed> both = order_pairs(every_arm(), {4, 9});
  const std::vector<ArmSeed> second = order_pairs(every_arm(), {9});
  ASSERT_EQ(both.size(), 2 * second.size());
  EXPECT_TRUE(std::equal(second.rbegin(), second.rend(), both.rbegin()));
}

// Every order of three comes about equally often: 1,000 of 6,000 draws, three deviations are 87.
TEST(PairOrder, ShufflesFairly) {
  std::map<std::vector<int>, int> counts;
  for (std::int64_t seed = 0; seed < 6000; ++seed) {
    std::vector<int> values{1, 2, 3};
    shuffle_by(values, seed, 17);
    ++counts[values];
  }
  ASSERT_EQ(counts.size(), 6U);
  for (const auto& [order, count] : counts) EXPECT_NEAR(count, 1000, 87);
}

}  // namespace
}  // namespace frazil
