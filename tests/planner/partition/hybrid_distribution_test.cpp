#include "planner/partition/hybrid_distribution.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <string>

namespace frazil {
namespace {

using std::chrono::microseconds;

// Converts tenths of a millisecond, in which the published numbers are given.
Duration tenths(int count) { return microseconds(100) * count; }

HybridCosts make_costs(int devices, int blocks) {
  HybridCosts costs;
  costs.devices = devices;
  costs.blocks = blocks;
  const auto none = std::vector<Duration>(static_cast<std::size_t>(blocks), Duration{0});
  costs.step.assign(static_cast<std::size_t>(devices), none);
  costs.reduce.assign(static_cast<std::size_t>(devices), none);
  costs.relay.assign(static_cast<std::size_t>(blocks) - 1, Duration{0});
  return costs;
}

// Makes six blocks on four devices: step = base / g x (1 + 0.1 (g - 1)), reduce = 0.5 (g - 1), in
// ms.
HybridCosts make_scaled(const std::vector<int>& base_ms) {
  HybridCosts costs = make_costs(4, 6);
  for (int g = 1; g <= 4; ++g) {
    for (std::size_t b = 0; b < 6; ++b) {
      const auto at = static_cast<std::size_t>(g) - 1;
      costs.step[at][b] = microseconds(1000) * base_ms[b] * (9 + g) / (10 * g);
      costs.reduce[at][b] = microseconds(500) * (g - 1);
    }
  }
  costs.relay = {tenths(40), tenths(20), tenths(10), tenths(15), tenths(6)};
  return costs;
}

// Returns the blocks' means in Pipe-BD's published scatter plots, at batches of 240, 120, 80 and
// 60.
HybridCosts make_published() {
  HybridCosts costs = make_costs(4, 6);
  const std::vector<std::vector<int>> means = {{417, 182, 101, 132, 100, 38},
                                               {217, 103, 70, 81, 77, 31},
                                               {159, 77, 64, 69, 69, 27},
                                               {129, 67, 61, 64, 65, 26}};
  for (std::size_t g = 0; g < 4; ++g) {
    for (std::size_t b = 0; b < 6; ++b) costs.step[g][b] = tenths(means[g][b]);
  }
  return costs;
}

using List = std::vector<int>;

TEST(HybridDistribution, VisitsGroupsInTheOrderOfPipeBdsCode) {
  std::vector<List> groups;
  visit_hybrid_plans(4, 6, [&](const List& found, const List&) {
    if (groups.empty() || groups.back() != found) groups.push_back(found);
  });
  EXPECT_EQ(groups,
            (std::vector<List>{
                {1, 1, 1, 1}, {4}, {3, 1}, {2, 2}, {1, 3}, {2, 1, 1}, {1, 2, 1}, {1, 1, 2}}));
}

TEST(HybridDistribution, VisitsEveryPlanOnce) {
  const std::vector<std::pair<std::pair<int, int>, int>> counts = {
      {{4, 6}, 56}, {{8, 6}, 792}, {{8, 13}, 50'388}, {{1, 6}, 1}, {{4, 1}, 1}, {{5, 3}, 15}};
  for (const auto& [size, expected] : counts) {
    const auto [devices, blocks] = size;
    std::vector<std::pair<List, List>> plans;
    visit_hybrid_plans(devices, blocks, [&](const List& groups, const List& cuts) {
      plans.emplace_back(groups, cuts);
    });
    std::sort(plans.begin(), plans.end());
    EXPECT_EQ(std::adjacent_find(plans.begin(), plans.end()), plans.end());
    EXPECT_EQ(plans.size(), static_cast<std::size_t>(expected)) << devices << " " << blocks;
    EXPECT_EQ(count_hybrid_plans(devices, blocks), expected) << devices << " " << blocks;
  }
  EXPECT_EQ(count_hybrid_plans(1000, 1000), std::numeric_limits<std::int64_t>::max());
}

TEST(HybridDistribution, SharesTheBlockThatDominates) {
  EXPECT_EQ(search_hybrid_plans(make_scaled({60, 20, 15, 10, 8, 5})),
            (HybridPlan{{2, 2}, {0, 1, 6}, tenths(384)}));
}

TEST(HybridDistribution, CutsEqualBlocksInTwoHalves) {
  EXPECT_EQ(search_hybrid_plans(make_scaled({20, 20, 20, 20, 20, 20})),
            (HybridPlan{{2, 2}, {0, 3, 6}, tenths(355)}));
}

TEST(HybridDistribution, IsAllDataParallelWhereThatCostsNothing) {
  HybridCosts costs = make_costs(4, 6);
  for (int g = 1; g <= 4; ++g) {
    costs.step[static_cast<std::size_t>(g) - 1].assign(6, microseconds(10'000) / g);
  }
  // Two stages of two devices cost the same, but the search visits them later.
  EXPECT_EQ(hybrid_cost(costs, {2, 2}, {0, 3, 6}), tenths(150));
  EXPECT_EQ(search_hybrid_plans(costs), (HybridPlan{{4}, {0, 6}, tenths(150)}));
  for (int g = 1; g <= 4; ++g) {
    costs.reduce[static_cast<std::size_t>(g) - 1].assign(6, microseconds(10'000) * (g - 1));
  }
  const auto dear = search_hybrid_plans(costs);
  ASSERT_TRUE(dear.has_value());
  EXPECT_EQ(dear->groups, (List{1, 1, 1, 1}));
  EXPECT_EQ(dear->cost, tenths(200));
}

TEST(HybridDistribution, ChoosesThePublishedSchedules) {
  const std::vector<HybridPlan> ranked = rank_hybrid_plans(make_published());
  ASSERT_EQ(ranked.size(), 56U);
  EXPECT_EQ(ranked[0], (HybridPlan{{2, 1, 1}, {0, 1, 3, 6}, tenths(283)}));
  EXPECT_EQ(ranked[1], (HybridPlan{{3, 1}, {0, 3, 6}, tenths(300)}));
  EXPECT_EQ(search_hybrid_plans(make_published()), ranked[0]);
  EXPECT_EQ(hybrid_cost(make_published(), {4}, {0, 6}), tenths(412));
  Duration pipeline = Duration::max();
  for (const HybridPlan& plan : ranked) {
    if (plan.groups.size() == 4) pipeline = std::min(pipeline, plan.cost);
  }
  EXPECT_EQ(pipeline, tenths(417));
}

// Boundaries of the ImageNet workload cross 10 GB/s at a batch of 240, and each all-reduce takes
// 0.5 (g - 1) ms: four plans tie to a tenth of a millisecond.
TEST(HybridDistribution, TurnsOverWhereCommunicationCostsALittle) {
  HybridCosts costs = make_published();
  const std::vector<std::int64_t> boundary_values = {24 * 56 * 56, 32 * 28 * 28, 64 * 14 * 14,
                                                     96 * 14 * 14, 160 * 7 * 7};
  for (std::size_t b = 0; b < boundary_values.size(); ++b) {
    costs.relay[b] = Bytes{boundary_values[b] * 4 * 240} / BytesPerSecond{10'000'000'000};
  }
  for (int g = 1; g <= 4; ++g) {
    costs.reduce[static_cast<std::size_t>(g) - 1].assign(6, microseconds(500) * (g - 1));
  }
  const std::vector<HybridPlan> ranked = rank_hybrid_plans(costs);
  EXPECT_EQ(ranked[0].cost, tenths(330));
  EXPECT_EQ(ranked[3].cost, tenths(330));
  EXPECT_GT(ranked[4].cost, tenths(330));
  EXPECT_EQ(search_hybrid_plans(costs), (HybridPlan{{3, 1}, {0, 3, 6}, tenths(330)}));
}

HybridCosts make_random_costs(std::mt19937_64& random) {
  HybridCosts costs =
      make_costs(static_cast<int>(random() % 6) + 1, static_cast<int>(random() % 8) + 1);
  const auto draw = [&](std::uint64_t most) {
    return Duration{static_cast<Duration::rep>(random() % most)};
  };
  for (auto& of_group : costs.step) {
    for (Duration& time : of_group) time = draw(50);
  }
  for (auto& of_group : costs.reduce) {
    for (Duration& time : of_group) time = draw(10);
  }
  for (Duration& time : costs.relay) time = draw(20);
  return costs;
}

TEST(HybridDistribution, IsFoundByTheDynamicProgramToo) {
  int limited = 0;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    HybridCosts costs = make_random_costs(random);
    if (seed % 2 == 1) {
      costs.memory = [](int group, int first, int end) {
        return Bytes{(end - first) * 60 / group};
      };
      costs.memory_limit = Bytes{static_cast<std::int64_t>(random() % 200)};
    }
    const auto searched = search_hybrid_plans(costs);
    const auto found = find_hybrid_plan(costs);
    ASSERT_EQ(searched.has_value(), found.has_value());
    if (!searched) {
      ++limited;
      continue;
    }
    EXPECT_EQ(searched->cost, found->cost);
    EXPECT_EQ(hybrid_cost(costs, found->groups, found->cuts), found->cost);
    EXPECT_TRUE(fits_memory(costs, found->groups, found->cuts));
    EXPECT_EQ(found->cuts.size(), found->groups.size() + 1);
  }
  EXPECT_GT(limited, 0);
}

// The published peaks of the ImageNet workload are 14.86 GB where one device has block 0 for the
// full batch and 6.98 GB where two share it. Blocks that fit alone may be too much together.
TEST(HybridDistribution, RejectsStagesWhoseBlocksDoNotFitTogether) {
  HybridCosts costs = make_published();
  const std::vector<std::int64_t> full_mb = {14'860, 5'200, 3'600, 3'900, 3'000, 2'400};
  costs.memory = [full_mb](int group, int first, int end) {
    std::int64_t sum = 0;
    for (int b = first; b < end; ++b) sum += full_mb[static_cast<std::size_t>(b)] * 1'000'000;
    return Bytes{sum / group};
  };
  costs.memory_limit = Bytes{11'000'000'000};
  EXPECT_EQ(search_hybrid_plans(costs), (HybridPlan{{2, 1, 1}, {0, 1, 3, 6}, tenths(283)}));
  std::size_t accepted = 0;
  visit_hybrid_plans(4, 6, [&](const List& groups, const List& cuts) {
    bool fits = true;
    for (std::size_t s = 0; s < groups.size(); ++s) {
      const Bytes joint = costs.memory(groups[s], cuts[s], cuts[s + 1]);
      fits = fits && joint.count <= 11'000'000'000;
    }
    EXPECT_EQ(fits_memory(costs, groups, cuts), fits);
    accepted += fits ? 1 : 0;
  });
  EXPECT_EQ(rank_hybrid_plans(costs).size(), accepted);
  for (const HybridPlan& plan : rank_hybrid_plans(costs)) EXPECT_GT(plan.groups.front(), 1);
  // Blocks 1 to 5 fit one by one, but not together on one device.
  EXPECT_FALSE(fits_memory(costs, {3, 1}, {0, 1, 6}));
  costs.memory_limit = Bytes{1'000'000'000};
  EXPECT_FALSE(search_hybrid_plans(costs).has_value());
  EXPECT_FALSE(find_hybrid_plan(costs).has_value());
}

}  // namespace
}  // namespace frazil
