#include "planner/partition/partition.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace frazil {
namespace {

using std::chrono::nanoseconds;

ChainCosts plain(const std::vector<int>& layers, int stages) {
  ChainCosts costs;
  for (const int layer : layers) costs.layer.emplace_back(layer);
  costs.boundary.assign(layers.size() - 1, Duration{0});
  costs.time_ppm.assign(static_cast<std::size_t>(stages), 1'000'000);
  return costs;
}

std::vector<LayerId> cuts(const std::vector<int>& values) {
  std::vector<LayerId> ids;
  for (const int value : values) ids.emplace_back(value);
  return ids;
}

// Returns the load of the most loaded stage of a cut, or nothing if a stage does not fit.
std::optional<Duration> load_of(const ChainCosts& costs, const std::vector<int>& begins) {
  const int layers = static_cast<int>(costs.layer.size());
  const int stages = static_cast<int>(begins.size());
  Duration largest{0};
  for (int s = 0; s < stages; ++s) {
    const auto stage = static_cast<std::size_t>(s);
    const int first = begins[stage];
    const int last = (s + 1 < stages ? begins[stage + 1] : layers) - 1;
    std::int64_t work = 0;
    for (int i = first; i <= last; ++i) work += costs.layer[static_cast<std::size_t>(i)].count();
    Duration load{work * costs.time_ppm[stage] / 1'000'000};
    const bool sends = last + 1 < layers;
    if (costs.back.empty()) {
      if (first > 0) load += costs.boundary[static_cast<std::size_t>(first) - 1];
      if (sends) load += costs.boundary[static_cast<std::size_t>(last)];
    } else {
      Duration sent{0};
      if (first > 0) sent += costs.back[static_cast<std::size_t>(first) - 1];
      if (sends) sent += costs.boundary[static_cast<std::size_t>(last)];
      load = std::max(load, sent);
    }
    if (costs.memory && costs.memory(s, stages, first, last) > costs.memory_limit[stage]) {
      return std::nullopt;
    }
    largest = std::max(largest, load);
  }
  return largest;
}

// Tries every cut, in lexicographic order, so that the first of the best is the answer.
std::optional<ChainPartition> try_all(const ChainCosts& costs, int stages) {
  const int layers = static_cast<int>(costs.layer.size());
  if (stages > layers) return std::nullopt;
  std::vector<int> begins;
  for (int s = 0; s < stages; ++s) begins.push_back(s);
  std::optional<ChainPartition> best;
  while (true) {
    const auto load = load_of(costs, begins);
    if (load && (!best || *load < best->load)) {
      best = ChainPartition{*load, cuts({begins.begin() + 1, begins.end()})};
    }
    int s = stages - 1;
    while (s > 0 && begins[static_cast<std::size_t>(s)] == layers - stages + s) --s;
    if (s == 0) return best;
    ++begins[static_cast<std::size_t>(s)];
    for (int t = s + 1; t < stages; ++t) {
      begins[static_cast<std::size_t>(t)] = begins[static_cast<std::size_t>(t) - 1] + 1;
    }
  }
}

struct RandomChain {
  ChainCosts costs;
  int stages = 1;
};

RandomChain make_random_chain(std::mt19937_64& random) {
  const auto draw = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  RandomChain chain;
  const int layers = draw(1, 10);
  chain.stages = draw(1, 6);
  const int largest = draw(0, 3) == 0 ? 3 : 5'000'000;  // small values make ties and zeros
  for (int i = 0; i < layers; ++i) chain.costs.layer.emplace_back(draw(0, largest));
  const int boundary = draw(0, 2) == 0 ? 0 : largest / draw(1, 4);
  for (int i = 0; i + 1 < layers; ++i) chain.costs.boundary.emplace_back(draw(0, boundary));
  if (draw(0, 2) == 0) {
    for (int i = 0; i + 1 < layers; ++i) chain.costs.back.emplace_back(draw(0, boundary));
  }
  const bool unequal = draw(0, 1) == 1;
  for (int s = 0; s < chain.stages; ++s) {
    chain.costs.time_ppm.push_back(unequal ? draw(300'000, 3'000'000) : 1'000'000);
  }
  if (draw(0, 1) == 1) {
    std::vector<int> sizes;
    for (int i = 0; i < layers; ++i) sizes.push_back(draw(0, 5));
    // Stages need memory alike two by two, and the costs say so, or each needs its own.
    const bool in_pairs = draw(0, 1) == 1;
    const auto like = [in_pairs](int stage) { return in_pairs ? stage / 2 * 2 : stage; };
    chain.costs.memory = [sizes, like](int stage, int stages, int first, int last) {
      Bytes sum{0};
      for (int i = first; i <= last; ++i) {
        sum += Bytes{sizes[static_cast<std::size_t>(i)] * (stages - like(stage))};
      }
      return sum;
    };
    std::vector<Bytes>& limits = chain.costs.memory_limit;
    for (int s = 0; s < chain.stages; ++s) {
      limits.push_back(like(s) == s ? Bytes{draw(0, 40)} : limits.back());
      if (in_pairs) chain.costs.memory_like.push_back(like(s));
    }
  }
  return chain;
}

TEST(Partition, CutsAChainWhereTheLargestLoadIsSmallest) {
  const auto partition = partition_into(plain({5, 1, 1, 1, 6}, 3), 3);
  ASSERT_TRUE(partition);
  EXPECT_EQ(partition->load, nanoseconds(6));
  EXPECT_EQ(partition->cuts, cuts({1, 4}));
}

TEST(Partition, PrefersTheLexicographicallySmallestCutsAmongEquals) {
  const auto partition = partition_into(plain({0, 0, 4, 0, 0}, 3), 3);
  ASSERT_TRUE(partition);
  EXPECT_EQ(partition->cuts, cuts({1, 2}));
}

TEST(Partition, AvoidsAnExpensiveBoundary) {
  ChainCosts costs = plain({2, 2, 2, 2}, 2);
  costs.boundary = {nanoseconds(1), nanoseconds(9), nanoseconds(1)};
  const auto partition = partition_into(costs, 2);
  ASSERT_TRUE(partition);
  EXPECT_EQ(partition->load, nanoseconds(7));
  EXPECT_EQ(partition->cuts, cuts({1}));
}

TEST(Partition, GivesASlowDeviceFewerLayers) {
  ChainCosts costs = plain({1, 1, 1, 1, 1, 1}, 2);
  costs.time_ppm = {2'000'000, 1'000'000};
  const auto partition = partition_into(costs, 2);
  ASSERT_TRUE(partition);
  EXPECT_EQ(partition->load, nanoseconds(4));
  EXPECT_EQ(partition->cuts, cuts({2}));
}

TEST(Partition, HasNoAnswerWithFewerLayersThanStages) {
  EXPECT_FALSE(partition_into(plain({1, 1}, 3), 3));
  EXPECT_TRUE(partition_into(plain({1, 1}, 3), 2));
}

TEST(Partition, HasNoAnswerWhenALayerFitsNowhere) {
  ChainCosts costs = plain({1, 1, 1}, 3);
  costs.memory = [](int, int, int first, int last) {
    return Bytes{first <= 1 && 1 <= last ? 9 : 1};
  };
  costs.memory_limit.assign(3, Bytes{8});
  EXPECT_FALSE(partition_into(costs, 2));
  EXPECT_FALSE(partition_into(costs, 3));
}

TEST(Partition, EqualsTryingAllCutsOnRandomChains) {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const RandomChain chain = make_random_chain(random);
    const auto expected = try_all(chain.costs, chain.stages);
    const auto actual = partition_into(chain.costs, chain.stages);
    ASSERT_EQ(actual.has_value(), expected.has_value());
    if (actual) {
      ASSERT_EQ(actual->load, expected->load);
      ASSERT_EQ(actual->cuts, expected->cuts);
    }
  }
}

}  // namespace
}  // namespace frazil
