#include "planner/named/dynmo.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <random>
#include <string>

#include "planner/named/uniform.h"
#include "planner/partition/partition.h"

namespace frazil {
namespace {

ChainLoads make_loads(const std::vector<int>& times, std::int64_t limit = 1'000'000) {
  ChainLoads chain;
  for (const int time : times) {
    chain.time.emplace_back(time);
    chain.memory.push_back(Bytes{1});
  }
  chain.memory_limit = Bytes{limit};
  return chain;
}

ChainLoads make_random_loads(std::mt19937_64& random) {
  ChainLoads chain = make_loads(std::vector<int>(random() % 12 + 1, 0));
  for (Duration& time : chain.time) time = Duration{static_cast<Duration::rep>(random() % 40)};
  for (Bytes& memory : chain.memory) memory = Bytes{static_cast<std::int64_t>(random() % 40)};
  chain.memory_limit = Bytes{static_cast<std::int64_t>(random() % 150) + 30};
  return chain;
}

template <class Value>
std::vector<Value> sums(const std::vector<Value>& values, const std::vector<int>& cuts) {
  std::vector<Value> sums(cuts.size() + 1);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto stage = std::upper_bound(cuts.begin(), cuts.end(), static_cast<int>(i));
    sums[static_cast<std::size_t>(stage - cuts.begin())] += values[i];
  }
  return sums;
}

std::int64_t bottleneck(const ChainLoads& chain, const std::vector<int>& cuts) {
  const std::vector<Duration> loads = sums(chain.time, cuts);
  return std::max_element(loads.begin(), loads.end())->count();
}

std::int64_t square_sum(const ChainLoads& chain, const std::vector<int>& cuts) {
  std::int64_t sum = 0;
  for (const Duration load : sums(chain.time, cuts)) sum += load.count() * load.count();
  return sum;
}

bool fits(const ChainLoads& chain, const std::vector<int>& cuts) {
  const std::vector<Bytes> held = sums(chain.memory, cuts);
  return std::all_of(held.begin(), held.end(),
                     [&](Bytes bytes) { return bytes <= chain.memory_limit; });
}

// Returns the smallest load of the most loaded of at most `workers` stages; none if no cut fits in
// memory.
std::optional<Duration> smallest_load(const ChainCosts& costs, int workers) {
  std::optional<Duration> smallest;
  for (int stages = 1; stages <= workers; ++stages) {
    const auto partition = partition_into(costs, stages);
    if (partition && (!smallest || partition->load < *smallest)) smallest = partition->load;
  }
  return smallest;
}

TEST(DynMoPartition, IsTheMinMaxOptimumWithinMemory) {
  int refused = 0;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const ChainLoads chain = make_random_loads(random);
    const int workers = static_cast<int>(random() % 6) + 1;
    ChainCosts costs;
    costs.layer = chain.time;
    costs.boundary.assign(chain.time.size() - 1, Duration{0});
    costs.time_ppm.assign(static_cast<std::size_t>(workers), 1'000'000);
    costs.memory = [&](int, int, int first, int last) {
      Bytes sum;
      for (int i = first; i <= last; ++i) sum += chain.memory[static_cast<std::size_t>(i)];
      return sum;
    };
    costs.memory_limit.assign(static_cast<std::size_t>(workers), chain.memory_limit);
    const auto expected = smallest_load(costs, workers);
    const auto cuts = balance_by_partition(chain, workers);
    ASSERT_EQ(cuts.has_value(), expected.has_value());
    if (!cuts) {
      ++refused;
      continue;
    }
    EXPECT_EQ(bottleneck(chain, *cuts), expected->count());
    EXPECT_LE(cuts->size() + 1, static_cast<std::size_t>(workers));
    EXPECT_TRUE(fits(chain, *cuts));
  }
  EXPECT_GT(refused, 0);
}

TEST(DynMoDiffusion, MovesBoundaryLayersToLighterNeighbours) {
  // The loads are 12 | 2 and their mean is 7. Each round hands over one layer.
  const ChainLoads chain = make_loads({3, 3, 3, 3, 1, 1});
  EXPECT_EQ(balance_by_diffusion(chain, {4}, 1), (std::vector<int>{3}));
  EXPECT_EQ(balance_by_diffusion(chain, {4}), (std::vector<int>{2}));  // 6 | 8
  // The published limit is five rounds; without a limit the diffusion goes on.
  const ChainLoads fine = make_loads(std::vector<int>(20, 1));
  EXPECT_EQ(balance_by_diffusion(fine, {18}), (std::vector<int>{13}));
  EXPECT_EQ(balance_by_diffusion(fine, {18}, 0), (std::vector<int>{10}));
}

TEST(DynMoDiffusion, LowersTheVarianceAndKeepsMemory) {
  int moved = 0;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const ChainLoads chain = make_random_loads(random);
    const std::vector<int> before =
        cut_uniformly(static_cast<int>(chain.time.size()), static_cast<int>(random() % 6) + 1);
    std::vector<int> cuts = before;
    for (int round = 0; round < 6; ++round) {
      const std::vector<int> next = balance_by_diffusion(chain, cuts, 1);
      EXPECT_EQ(next.size(), cuts.size());
      EXPECT_EQ(std::adjacent_find(next.begin(), next.end(), std::greater_equal<>()), next.end());
      if (next != cuts) {
        EXPECT_LT(square_sum(chain, next), square_sum(chain, cuts));
        ++moved;
      }
      if (fits(chain, cuts)) {
        EXPECT_TRUE(fits(chain, next));
      }
      cuts = next;
    }
    EXPECT_EQ(balance_by_diffusion(chain, before, 6), cuts);
  }
  EXPECT_GT(moved, 100);
}

TEST(DynMoPacking, MergesNeighboursAsLongAsThroughputStays) {
  // The loads are 9 | 2 | 3 | 4 | 8, so the bottleneck is 9.
  const ChainLoads chain = make_loads({9, 2, 3, 4, 8});
  EXPECT_EQ(pack_stages(chain, {1, 2, 3, 4}), (std::vector<int>{1, 4}));
  EXPECT_EQ(pack_stages(chain, {1, 2, 3, 4}, 2), (std::vector<int>{4}));
  EXPECT_EQ(pack_stages(make_loads({9, 2, 3, 4, 8}, 2), {1, 2, 3, 4}), (std::vector<int>{1, 3, 4}));
  EXPECT_EQ(pack_stages(make_loads({9, 2, 3, 4, 8}, 2), {1, 2, 3, 4}, 2), std::nullopt);
}

TEST(DynMoPacking, NeverRaisesTheBottleneckNorTheMemory) {
  int packed = 0;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const ChainLoads chain = make_random_loads(random);
    const auto cuts = balance_by_partition(chain, 6);
    if (!cuts) continue;
    const auto after = pack_stages(chain, *cuts);
    ASSERT_TRUE(after.has_value());
    EXPECT_EQ(bottleneck(chain, *after), bottleneck(chain, *cuts));
    EXPECT_TRUE(fits(chain, *after));
    EXPECT_TRUE(std::includes(cuts->begin(), cuts->end(), after->begin(), after->end()));
    const auto target = static_cast<int>(random() % 6) + 1;
    if (const auto few = pack_stages(chain, *cuts, target)) {
      EXPECT_LE(static_cast<int>(few->size()) + 1, std::max<int>(target, 1));
      EXPECT_TRUE(fits(chain, *few));
      ++packed;
    }
  }
  EXPECT_GT(packed, 100);
}

TEST(Uniform, GivesTheFirstStagesOneLayerMore) {
  EXPECT_EQ(cut_uniformly(8, 4), (std::vector<int>{2, 4, 6}));
  EXPECT_EQ(cut_uniformly(10, 4), (std::vector<int>{3, 6, 8}));
  EXPECT_EQ(cut_uniformly(2, 4), (std::vector<int>{1}));
  EXPECT_EQ(cut_uniformly(5, 1), (std::vector<int>{}));
}

}  // namespace
}  // namespace frazil
