#include "exec/reduction/gradient_tree.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/exec/support/random_tensors.h"

namespace frazil {
namespace {

constexpr int kMostMicroBatches = 13;

// Evaluates the rule by itself: a node of n > 1 leaves splits after the largest power of two below
// n.
at::Tensor evaluate(const std::vector<Tensors>& leaves, std::size_t tensor, int first, int end) {
  if (end - first == 1) return leaves[static_cast<std::size_t>(first)][tensor];
  int left = 1;
  while (2 * left < end - first) left *= 2;
  return at::add(evaluate(leaves, tensor, first, first + left),
                 evaluate(leaves, tensor, first + left, end));
}

Tensors evaluate_all(const std::vector<Tensors>& leaves) {
  const auto end = static_cast<int>(leaves.size());
  return {evaluate(leaves, 0, 0, end), evaluate(leaves, 1, 0, end)};
}

std::vector<Tensors> draw_leaves(RandomTensors& random, int count) {
  std::vector<Tensors> leaves;
  for (int m = 0; m < count; ++m) leaves.push_back({random.draw({5, 3}), random.draw({7})});
  return leaves;
}

std::vector<int> shuffled(int count, std::mt19937_64& engine) {
  std::vector<int> order;
  for (int m = 0; m < count; ++m) order.push_back(m);
  std::shuffle(order.begin(), order.end(), engine);
  return order;
}

TEST(GradientTree, SumsLeavesOfAnyOrderToTheSameBits) {
  constexpr std::uint64_t kSeed = 3;
  SCOPED_TRACE(kSeed);
  std::mt19937_64 engine(kSeed);
  RandomTensors random(kSeed);
  for (int count = 1; count <= kMostMicroBatches; ++count) {
    const std::vector<Tensors> leaves = draw_leaves(random, count);
    const Tensors expected = evaluate_all(leaves);
    for (int round = 0; round < 8; ++round) {
      GradientTree tree(count);
      for (const int m : shuffled(count, engine)) {
        // The tree alone holds these copies, so that it may add in place.
        tree.add({m, m + 1}, copies_of(leaves[static_cast<std::size_t>(m)]));
      }
      EXPECT_TRUE(same_tensors(tree.take_root(), expected)) << count << " leaves, round " << round;
      EXPECT_EQ(tree.held(), 0U);
    }
  }
}

// Leaves are split at random between two owners: one ships what it could merge, the second
// completes the tree.
TEST(GradientTree, TakesSubtreesOfAnotherOwner) {
  constexpr std::uint64_t kSeed = 4;
  SCOPED_TRACE(kSeed);
  std::mt19937_64 engine(kSeed);
  RandomTensors random(kSeed);
  for (int count = 1; count <= kMostMicroBatches; ++count) {
    const std::vector<Tensors> leaves = draw_leaves(random, count);
    for (int round = 0; round < 8; ++round) {
      GradientTree there(count);
      GradientTree here(count);
      for (const int m : shuffled(count, engine)) {
        GradientTree& owner = engine() % 2 == 0 ? here : there;
        owner.add({m, m + 1}, copies_of(leaves[static_cast<std::size_t>(m)]));
      }
      for (auto& [node, sum] : there.take_nodes()) here.add(node, std::move(sum));
      EXPECT_EQ(there.held(), 0U);
      EXPECT_TRUE(same_tensors(here.take_root(), evaluate_all(leaves))) << count;
    }
  }
}

TEST(GradientTree, NeverWritesToATensorThatSomebodyElseHolds) {
  RandomTensors random(5);
  for (int count = 2; count <= kMostMicroBatches; ++count) {
    const std::vector<Tensors> leaves = draw_leaves(random, count);
    std::vector<Tensors> copies;
    for (const Tensors& leaf : leaves) copies.push_back(copies_of(leaf));
    GradientTree tree(count);
    for (int m = 0; m < count; ++m) tree.add({m, m + 1}, leaves[static_cast<std::size_t>(m)]);
    EXPECT_TRUE(same_tensors(tree.take_root(), evaluate_all(copies)));
    for (std::size_t m = 0; m < leaves.size(); ++m) {
      EXPECT_TRUE(same_tensors(leaves[m], copies[m])) << "leaf " << m << " of " << count;
    }
  }
}

// One tensor is the gradient of two parameters, and two views share one storage.
TEST(GradientTree, AddsOnceWhereTwoGradientsShareMemory) {
  RandomTensors random(6);
  const at::Tensor right = random.draw({4});
  at::Tensor twice = random.draw({4});
  const at::Tensor expected = twice + right;
  GradientTree tree(2);
  Tensors shared{twice, twice};
  twice.reset();
  tree.add({0, 1}, std::move(shared));
  tree.add({1, 2}, {right, right});
  EXPECT_TRUE(same_tensors(tree.take_root(), {expected, expected}));

  at::Tensor storage = random.draw({6});
  const at::Tensor sum_of_front = storage.narrow(0, 0, 4) + right;
  const at::Tensor sum_of_back = storage.narrow(0, 2, 4) + right;
  Tensors views{storage.narrow(0, 0, 4), storage.narrow(0, 2, 4)};
  storage.reset();
  tree.add({0, 1}, std::move(views));
  tree.add({1, 2}, {right, right});
  EXPECT_TRUE(same_tensors(tree.take_root(), {sum_of_front, sum_of_back}));
}

TEST(GradientTree, AddsInPlaceWhenNobodyElseHoldsTheSum) {
  RandomTensors random(7);
  Tensors left{random.draw({4})};
  const void* memory = left[0].const_data_ptr();
  GradientTree tree(2);
  tree.add({0, 1}, std::move(left));
  tree.add({1, 2}, {random.draw({4})});
  EXPECT_EQ(tree.take_root()[0].const_data_ptr(), memory);
}

TEST(GradientTree, RefusesWhatIsNoSubtreeAndWhatCameBefore) {
  GradientTree tree(6);
  EXPECT_THROW(tree.add({1, 3}, {at::zeros({1})}), std::logic_error);
  tree.add({0, 1}, {at::zeros({1})});
  EXPECT_THROW(tree.add({0, 1}, {at::zeros({1})}), std::logic_error);
  EXPECT_THROW((void)tree.take_root(), std::logic_error);
}

}  // namespace
}  // namespace frazil
