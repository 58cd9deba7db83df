#include "planner/lowering/reduction_memory.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

namespace frazil {
namespace {

using Nodes = std::vector<std::vector<TreeNode>>;

TEST(ReductionMemory, SharesOfFloatsAreEverythingOnceAndEqualUpToAFloat) {
  EXPECT_EQ(share_of_floats(Bytes{40}, 0, 4), Bytes{8});
  EXPECT_EQ(share_of_floats(Bytes{40}, 1, 4), Bytes{12});
  EXPECT_EQ(share_of_floats(Bytes{4}, 0, 3), Bytes{0});
  for (std::size_t parts = 1; parts <= 9; ++parts) {
    for (std::int64_t floats = 0; floats <= 40; ++floats) {
      Bytes all;
      for (std::size_t part = 0; part < parts; ++part) {
        const Bytes share = share_of_floats(Bytes{4 * floats}, part, parts);
        EXPECT_LE(std::abs(share.count * static_cast<std::int64_t>(parts) - 4 * floats),
                  4 * static_cast<std::int64_t>(parts));
        all += share;
      }
      EXPECT_EQ(all, Bytes{4 * floats});
    }
  }
}

// The message has n = 48 bytes. Two owners have a micro-batch each: a device first holds its own
// node and half of the other owner's, then half of the sum, the result and the other half.
TEST(ReductionMemory, OfTheExactTreeIsTheLargerOfBothPhases) {
  const Nodes halves = {{{0, 1}}, {{1, 2}}};
  EXPECT_EQ(find_exact_reduction_memory(Bytes{48}, ReceivedSets(halves, 2), 0, Bytes{48}),
            Bytes{48});
  // Four owners have shares of a quarter: at most (0+1), 2 and 3 besides the own node, 48 + 3 x 12;
  // then 48 + 12 + 12.
  const Nodes quarters = {{{0, 1}}, {{1, 2}}, {{2, 3}}, {{3, 4}}};
  EXPECT_EQ(find_exact_reduction_memory(Bytes{48}, ReceivedSets(quarters, 4), 0, Bytes{48}),
            Bytes{36});
  EXPECT_EQ(ReceivedSets(quarters, 4).most(0), 3);
  // The tree of three is (01)2: the owner of 1 sends one node, the owner of 0 and 2 two.
  const Nodes unequal = {{{0, 1}, {2, 3}}, {{1, 2}}};
  EXPECT_EQ(find_exact_reduction_memory(Bytes{48}, ReceivedSets(unequal, 3), 0, Bytes{96}),
            Bytes{24});
  EXPECT_EQ(find_exact_reduction_memory(Bytes{48}, ReceivedSets(unequal, 3), 1, Bytes{48}),
            Bytes{48});
  // Memory that is held anyway is enough.
  EXPECT_EQ(find_exact_reduction_memory(Bytes{48}, ReceivedSets(halves, 2), 0, Bytes{144}),
            Bytes{});
  // An owner without micro-batches holds its share of what comes, and the result.
  EXPECT_EQ(find_exact_reduction_memory(Bytes{48}, ReceivedSets({{}, {{0, 2}}}, 2), 0, Bytes{48}),
            Bytes{48});
}

TEST(ReductionMemory, OfARingIsTwoCopies) {
  EXPECT_EQ(find_ring_reduction_memory(Bytes{48}, Bytes{48}), Bytes{48});
}

TEST(ReductionMemory, ItsBoundIsNeverBelow) {
  int positive = 0;
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const int micro_batches = 1 + static_cast<int>(random() % 12);
    const std::size_t owners = 2 + random() % 4;
    Nodes owned(owners);
    for (int m = 0; m < micro_batches; ++m) owned[random() % owners].push_back({m, m + 1});
    Nodes nodes;
    int all = 0;
    for (const auto& each : owned) {
      nodes.push_back(maximal_nodes(each, micro_batches));
      all += static_cast<int>(nodes.back().size());
    }
    const ReceivedSets received(nodes, micro_batches);
    const Bytes size{4 * static_cast<std::int64_t>(random() % 1000)};
    for (std::size_t self = 0; self < owners; ++self) {
      const Bytes held = size * static_cast<std::int64_t>(random() % 3);
      const int own = static_cast<int>(nodes[self].size());
      const Bytes memory = find_exact_reduction_memory(size, received, self, held);
      EXPECT_LE(memory, bound_exact_reduction_memory(size, owners, own, all - own, held));
      if (memory.count > 0) ++positive;
    }
  }
  EXPECT_GT(positive, 1000);
}

}  // namespace
}  // namespace frazil
