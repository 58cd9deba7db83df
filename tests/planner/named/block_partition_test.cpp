#include "planner/named/block_partition.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

#include "planner/partition/partition.h"
#include "tests/support/pipedream_graph.h"

namespace frazil {
namespace {

std::vector<Duration> times(const std::vector<int>& ns) {
  std::vector<Duration> times;
  for (const int time : ns) times.emplace_back(time);
  return times;
}

std::vector<std::int64_t> block_sums(const std::vector<Duration>& costs,
                                     const std::vector<int>& cuts) {
  std::vector<std::int64_t> sums(cuts.size() + 1, 0);
  for (std::size_t i = 0; i < costs.size(); ++i) {
    const auto block = std::upper_bound(cuts.begin(), cuts.end(), static_cast<int>(i));
    sums[static_cast<std::size_t>(block - cuts.begin())] += costs[i].count();
  }
  return sums;
}

std::int64_t bottleneck(const std::vector<Duration>& costs, int blocks) {
  const std::vector<std::int64_t> sums = block_sums(costs, partition_in_blocks(costs, blocks));
  return *std::max_element(sums.begin(), sums.end());
}

std::int64_t optimum(const std::vector<Duration>& costs, int stages) {
  ChainCosts chain;
  chain.layer = costs;
  chain.boundary.assign(costs.size() - 1, Duration{0});
  chain.time_ppm.assign(static_cast<std::size_t>(stages), 1'000'000);
  return partition_into(chain, stages).value().load.count();
}

TEST(BlockPartition, MovesElementsToTheSmallestBlock) {
  // The blocks begin with two elements each. Block 2 is largest, so block 0 takes an element from
  // block 1, and block 1 one from block 2.
  EXPECT_EQ(partition_in_blocks(times({1, 1, 1, 1, 9, 9}), 3), (std::vector<int>{4, 5}));
  EXPECT_EQ(partition_in_blocks(times({5, 5, 5, 5}), 2), (std::vector<int>{2}));
  EXPECT_EQ(partition_in_blocks(times({5, 5, 5, 5, 5}), 2), (std::vector<int>{2}));
  EXPECT_EQ(partition_in_blocks(times({7}), 1), (std::vector<int>{}));
}

TEST(BlockPartition, EndsWithBlocksThatDifferByOneElementAtMost) {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    std::vector<Duration> costs;
    const std::size_t count = random() % 60 + 1;
    const std::uint64_t most = seed % 2 == 0 ? 3 : 1000;
    for (std::size_t i = 0; i < count; ++i) {
      costs.emplace_back(static_cast<Duration::rep>(random() % most));
    }
    const int blocks = static_cast<int>(random() % count) + 1;
    const std::vector<int> cuts = partition_in_blocks(costs, blocks);
    ASSERT_EQ(cuts.size() + 1, static_cast<std::size_t>(blocks));
    EXPECT_TRUE(std::is_sorted(cuts.begin(), cuts.end()));
    const auto [least, greatest] = std::minmax_element(costs.begin(), costs.end());
    std::vector<Duration> weights;
    for (const Duration cost : costs) weights.push_back(cost - *least);
    const std::vector<std::int64_t> sums = block_sums(weights, cuts);
    const auto [smallest, largest] = std::minmax_element(sums.begin(), sums.end());
    EXPECT_LE(*largest, *smallest + (*greatest - *least).count());
  }
}

// Measures how far torchgpipe's blocks lie above the optimum, in percent to one digit; both get the
// same costs, forward and backward in the order of the file.
class PublishedBlocks : public testing::Test {
 protected:
  static void expect_above_optimum(const std::string& model, std::size_t operators,
                                   const std::vector<std::string>& expected) {
    const auto file = find_pipedream_graph(model);
    if (!file) GTEST_SKIP() << "the public profile of " << model << " is not at hand";
    std::vector<Duration> costs;
    for (const GraphNode& node : read_pipedream_graph(*file).nodes) {
      costs.push_back(node.forward + node.backward);
    }
    ASSERT_EQ(costs.size(), operators);
    int blocks = 4;
    for (const std::string& percent : expected) {
      const double above = static_cast<double>(bottleneck(costs, blocks)) /
                               static_cast<double>(optimum(costs, blocks)) -
                           1;
      EXPECT_EQ(fmt::format("{:+.1f}", 100 * above), percent) << model << " in " << blocks;
      blocks *= 2;
    }
  }
};

TEST_F(PublishedBlocks, OfVgg16LieAsFarAboveTheOptimum) {
  expect_above_optimum("vgg16", 41, {"+8.0", "+6.1", "+6.1"});
}

TEST_F(PublishedBlocks, OfResnet50LieAsFarAboveTheOptimum) {
  expect_above_optimum("resnet50", 177, {"+5.5", "+15.1", "+24.6"});
}

}  // namespace
}  // namespace frazil
