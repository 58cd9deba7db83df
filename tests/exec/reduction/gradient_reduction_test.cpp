#include "exec/reduction/gradient_reduction.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/exec/support/random_tensors.h"

namespace frazil {
namespace {

TEST(ShareOf, CoversEveryElementOnceForAnyCountsAndParts) {
  constexpr std::uint64_t kSeed = 11;
  SCOPED_TRACE(kSeed);
  std::mt19937_64 engine(kSeed);
  for (int round = 0; round < 300; ++round) {
    std::vector<std::int64_t> elements(engine() % 6);
    for (std::int64_t& count : elements) count = static_cast<std::int64_t>(engine() % 12);
    const std::size_t parts = 1 + engine() % 5;
    std::vector<std::vector<int>> seen;
    std::int64_t total = 0;
    for (const std::int64_t count : elements) {
      seen.emplace_back(static_cast<std::size_t>(count), 0);
      total += count;
    }
    for (std::size_t part = 0; part < parts; ++part) {
      std::int64_t size = 0;
      for (const TensorSlice& slice : share_of(elements, part, parts)) {
        size += slice.count;
        for (std::int64_t i = slice.first; i < slice.first + slice.count; ++i) {
          ++seen.at(slice.tensor).at(static_cast<std::size_t>(i));
        }
      }
      const auto even = total / static_cast<std::int64_t>(parts);
      EXPECT_TRUE(size == even || size == even + 1) << size << " of " << total;
    }
    for (const std::vector<int>& tensor : seen) {
      for (const int times : tensor) ASSERT_EQ(times, 1) << "round " << round;
    }
  }
}

TEST(ShareOf, CutsAcrossTensors) {
  EXPECT_EQ(share_of({3, 5}, 0, 2), (std::vector<TensorSlice>{{0, 0, 3}, {1, 0, 1}}));
  EXPECT_EQ(share_of({3, 5}, 1, 2), (std::vector<TensorSlice>{{1, 1, 4}}));
}

const std::vector<std::vector<std::int64_t>> kShapes = {{5, 3}, {7}, {1, 2, 3}};

std::vector<Tensors> draw_leaves(std::uint64_t seed, int count) {
  RandomTensors random(seed);
  std::vector<Tensors> leaves(static_cast<std::size_t>(count));
  for (Tensors& leaf : leaves) {
    for (const auto& shape : kShapes) leaf.push_back(random.draw(shape));
  }
  return leaves;
}

Tensors sum_alone(const std::vector<Tensors>& leaves) {
  const auto count = static_cast<int>(leaves.size());
  GradientTree tree(count);
  for (int m = 0; m < count; ++m) tree.add({m, m + 1}, leaves[static_cast<std::size_t>(m)]);
  return tree.take_root();
}

// Returns the sums of every owner, each on a rank of its own.
std::vector<Tensors> reduce(const std::vector<LayerOwner>& owners, int ranks,
                            const std::vector<Tensors>& leaves) {
  const auto communicators = make_in_process_communicators(ranks);
  const auto count = static_cast<int>(leaves.size());
  std::vector<Tensors> sums(owners.size());
  run_ranks(communicators, [&](Communicator& self) {
    for (std::size_t o = 0; o < owners.size(); ++o) {
      if (owners[o].device.value != self.rank()) continue;
      GradientTree tree(count);
      for (const TreeNode& interval : owners[o].micro_batches) {
        for (int m = interval.first; m < interval.end; ++m) {
          tree.add({m, m + 1}, copies_of(leaves[static_cast<std::size_t>(m)]));
        }
      }
      sums[o] = reduce_exactly(tree.take_nodes(), leaves[0], owners, count, self, {.step = 3});
    }
  });
  return sums;
}

TEST(ReduceExactly, EqualsOneTreeForUnequalOwners) {
  // A split has the owners in rank order, by the ends of their micro-batches; equal ends own
  // nothing.
  const std::vector<std::vector<int>> splits = {
      {3, 6},    {5, 6},     {6, 6},    {0, 6},       {1, 7},       {2, 4, 6},
      {4, 4, 7}, {1, 5, 12}, {2, 3, 5}, {3, 4, 9, 9}, {2, 4, 6, 8}, {1, 2, 3, 13}};
  for (const std::vector<int>& ends : splits) {
    std::vector<LayerOwner> owners;
    int first = 0;
    for (const int end : ends) {
      LayerOwner owner{DeviceId{owners.size()}, {}};
      if (first < end) owner.micro_batches.push_back({first, end});
      owners.push_back(owner);
      first = end;
    }
    const std::vector<Tensors> leaves = draw_leaves(static_cast<std::uint64_t>(first), first);
    const Tensors expected = sum_alone(leaves);
    for (const Tensors& sums : reduce(owners, static_cast<int>(owners.size()), leaves)) {
      EXPECT_TRUE(same_tensors(sums, expected))
          << ends.size() << " owners, " << ends[0] << " of " << first << " on the first";
    }
  }
}

TEST(ReduceExactly, TakesOwnersOfSeveralIntervalsAmongOtherRanks) {
  const std::vector<Tensors> leaves = draw_leaves(1, 9);
  const std::vector<LayerOwner> owners = {
      {DeviceId{1}, {{0, 2}, {5, 6}}}, {DeviceId{2}, {{2, 5}}}, {DeviceId{4}, {{6, 9}}}};
  for (const Tensors& sums : reduce(owners, 5, leaves)) {
    EXPECT_TRUE(same_tensors(sums, sum_alone(leaves)));
  }
}

TEST(ReduceExactly, IsForOwnersOnly) {
  const auto communicators = make_in_process_communicators(2);
  const Tensors like{at::zeros({2})};
  EXPECT_THROW((void)reduce_exactly({}, like, {{DeviceId{1}, {{0, 1}}}}, 1, *communicators[0], {}),
               std::logic_error);
}

}  // namespace
}  // namespace frazil
