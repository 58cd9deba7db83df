#include "sim/gradient_tree_shape.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "sim/received_sets.h"

namespace frazil {
namespace {

// The binary counter itself, a stack of sums with levels: equal levels merge, leftovers fold from
// right to left. Holds a drawing and every node that is made.
struct Counter {
  std::string drawing;
  std::set<TreeNode> nodes;
};

Counter count_up(int micro_batches) {
  struct Sum {
    int level = 0;
    TreeNode node;
    std::string text;
  };
  Counter counter;
  std::vector<Sum> stack;
  const auto merge_top = [&](int level) {
    const Sum right = stack.back();
    stack.pop_back();
    const Sum left = stack.back();
    stack.pop_back();
    const auto bracket = [](const Sum& sum) {
      if (sum.node.leaves() == 1) {
        return sum.text;
      }
      return std::string("(").append(sum.text).append(")");
    };
    stack.push_back({level,
                     {left.node.first, right.node.end},
                     bracket(left).append("+").append(bracket(right))});
    counter.nodes.insert(stack.back().node);
  };
  for (int leaf = 0; leaf < micro_batches; ++leaf) {
    stack.push_back({0, {leaf, leaf + 1}, std::to_string(leaf)});
    counter.nodes.insert(stack.back().node);
    while (stack.size() > 1 && stack[stack.size() - 2].level == stack.back().level) {
      merge_top(stack.back().level + 1);
    }
  }
  while (stack.size() > 1) {
    merge_top(0);
  }
  counter.drawing = stack.back().text;
  return counter;
}

std::vector<bool> owned_leaves(const std::vector<TreeNode>& owned, int micro_batches) {
  std::vector<bool> leaves(static_cast<std::size_t>(micro_batches));
  for (const TreeNode& interval : owned) {
    for (int leaf = interval.first; leaf < interval.end; ++leaf) {
      leaves[static_cast<std::size_t>(leaf)] = true;
    }
  }
  return leaves;
}

bool covers(const std::vector<bool>& leaves, const TreeNode& node) {
  return std::all_of(leaves.begin() + node.first, leaves.begin() + node.end,
                     [](bool owned) { return owned; });
}

// Returns all nodes that are covered and lie in no larger covered node.
std::vector<TreeNode> maximal_by_search(const std::vector<TreeNode>& owned, int micro_batches) {
  const std::vector<bool> leaves = owned_leaves(owned, micro_batches);
  const std::set<TreeNode> nodes = count_up(micro_batches).nodes;
  std::vector<TreeNode> maximal;
  for (const TreeNode& node : nodes) {
    const bool inside_another = std::any_of(nodes.begin(), nodes.end(), [&](const TreeNode& other) {
      return other != node && other.first <= node.first && node.end <= other.end &&
             covers(leaves, other);
    });
    if (covers(leaves, node) && !inside_another) {
      maximal.push_back(node);
    }
  }
  return maximal;
}

// Holds a set of sums and merges any two children of one node as soon as both are there.
int held_by_search(const std::vector<TreeNode>& owned, int micro_batches) {
  std::map<TreeNode, TreeNode> parent_of_left;  // left child -> right child
  for (const TreeNode& node : count_up(micro_batches).nodes) {
    if (node.leaves() > 1) {
      parent_of_left[children(node).first] = children(node).second;
    }
  }
  const std::vector<bool> leaves = owned_leaves(owned, micro_batches);
  std::set<TreeNode> held;
  std::size_t most = 0;
  for (int leaf = 0; leaf < micro_batches; ++leaf) {
    if (!leaves[static_cast<std::size_t>(leaf)]) {
      continue;
    }
    held.insert({leaf, leaf + 1});
    most = std::max(most, held.size());
    for (bool merged = true; merged;) {
      merged = false;
      for (const auto& [left, right] : parent_of_left) {
        if (!held.contains(left) || !held.contains(right)) {
          continue;
        }
        held.erase(left);
        held.erase(right);
        held.insert({left.first, right.end});
        merged = true;
        break;
      }
    }
  }
  return static_cast<int>(most);
}

// Draws sorted disjoint intervals, some of them touching.
std::vector<TreeNode> random_intervals(std::mt19937_64& random, int micro_batches) {
  std::vector<TreeNode> intervals;
  for (int at = 0; at < micro_batches;) {
    const int end = std::uniform_int_distribution<int>(at + 1, micro_batches)(random);
    if (random() % 3 != 0) {
      intervals.push_back({at, std::min(end, at + 5)});
    }
    at = std::min(end, at + 5);
  }
  return intervals;
}

// Lists every [first, end) inside the step, empty ones included.
std::vector<TreeNode> all_intervals(int micro_batches) {
  std::vector<TreeNode> intervals;
  for (int first = 0; first < micro_batches; ++first) {
    for (int end = first; end <= micro_batches; ++end) {
      intervals.push_back({first, end});
    }
  }
  return intervals;
}

// Draws a node as text, such as "((0+1)+(2+3))+(4+5)".
std::string draw_node(const TreeNode& node) {
  if (node.leaves() == 1) return std::to_string(node.first);
  const auto draw_child = [](const TreeNode& child) {
    return child.leaves() == 1 ? draw_node(child) : "(" + draw_node(child) + ")";
  };
  const auto [left, right] = children(node);
  return draw_child(left) + "+" + draw_child(right);
}

std::string draw_tree(int micro_batches) { return draw_node({0, micro_batches}); }

TEST(GradientTreeShape, SplitsAsTheTreesOfTheDesign) {
  EXPECT_EQ(draw_tree(1), "0");
  EXPECT_EQ(draw_tree(2), "0+1");
  EXPECT_EQ(draw_tree(3), "(0+1)+2");
  EXPECT_EQ(draw_tree(4), "(0+1)+(2+3)");
  EXPECT_EQ(draw_tree(5), "((0+1)+(2+3))+4");
  EXPECT_EQ(draw_tree(6), "((0+1)+(2+3))+(4+5)");
  EXPECT_EQ(draw_tree(7), "((0+1)+(2+3))+((4+5)+6)");
  EXPECT_EQ(draw_tree(8), "((0+1)+(2+3))+((4+5)+(6+7))");
}

TEST(GradientTreeShape, IsTheBinaryCounterFoldedFromRightToLeft) {
  for (int micro_batches = 1; micro_batches <= 200; ++micro_batches) {
    ASSERT_EQ(draw_tree(micro_batches), count_up(micro_batches).drawing);
  }
}

TEST(GradientTreeShape, KnowsItsNodes) {
  for (int micro_batches = 1; micro_batches <= 40; ++micro_batches) {
    std::set<TreeNode> nodes;
    for (int first = -1; first <= micro_batches; ++first) {
      for (int end = first - 1; end <= micro_batches + 1; ++end) {
        if (is_tree_node({first, end}, micro_batches)) {
          nodes.insert({first, end});
        }
      }
    }
    ASSERT_EQ(nodes, count_up(micro_batches).nodes) << micro_batches;
  }
}

bool children_know_each_other(const TreeNode& node, int micro_batches) {
  const auto [left, right] = children(node);
  return parent(left, micro_batches) == node && parent(right, micro_batches) == node &&
         sibling(left, micro_batches) == right && sibling(right, micro_batches) == left;
}

TEST(GradientTreeShape, ParentsAndSiblingsUndoChildren) {
  for (int micro_batches = 1; micro_batches <= 40; ++micro_batches) {
    for (const TreeNode& node : count_up(micro_batches).nodes) {
      ASSERT_TRUE(node.leaves() == 1 || children_know_each_other(node, micro_batches))
          << "[" << node.first << "," << node.end << ") of " << micro_batches;
    }
  }
}

TEST(GradientTreeShape, TheRootHasNoParent) {
  EXPECT_EQ(parent({0, 6}, 6), std::nullopt);
  EXPECT_EQ(sibling({0, 6}, 6), std::nullopt);
  EXPECT_EQ(parent({0, 1}, 1), std::nullopt);
}

TEST(GradientTreeShape, OwnersOfHalfOfSixShipTwoNodesEach) {
  EXPECT_EQ(maximal_nodes({{0, 3}}, 6), (std::vector<TreeNode>{{0, 2}, {2, 3}}));
  EXPECT_EQ(maximal_nodes({{3, 6}}, 6), (std::vector<TreeNode>{{3, 4}, {4, 6}}));
  EXPECT_EQ(maximal_nodes({{0, 6}}, 6), (std::vector<TreeNode>{{0, 6}}));
  EXPECT_TRUE(maximal_nodes({}, 6).empty());
}

TEST(GradientTreeShape, MaximalNodesOfIntervalsAreThoseOfASearch) {
  for (int micro_batches = 1; micro_batches <= 20; ++micro_batches) {
    for (const TreeNode& interval : all_intervals(micro_batches)) {
      ASSERT_EQ(maximal_nodes({interval}, micro_batches),
                maximal_by_search({interval}, micro_batches))
          << "[" << interval.first << "," << interval.end << ") of " << micro_batches;
    }
  }
}

TEST(GradientTreeShape, MaximalNodesOfAnySetAreThoseOfASearch) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const int micro_batches = std::uniform_int_distribution<int>(1, 40)(random);
    const std::vector<TreeNode> owned = random_intervals(random, micro_batches);
    ASSERT_EQ(maximal_nodes(owned, micro_batches), maximal_by_search(owned, micro_batches));
  }
}

TEST(GradientTreeShape, HeldSetsAreThoseOfALiteralSimulation) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const int micro_batches = std::uniform_int_distribution<int>(1, 40)(random);
    const std::vector<TreeNode> owned = random_intervals(random, micro_batches);
    ASSERT_EQ(held_gradient_sets(owned, micro_batches), held_by_search(owned, micro_batches));
  }
  EXPECT_EQ(held_gradient_sets({}, 4), 0);
  EXPECT_EQ(held_gradient_sets({{0, 4}}, 4), 3);  // (0+1), 2, 3
}

TEST(GradientTreeShape, HeldSetsStayWithinTheirBounds) {
  for (int micro_batches = 2; micro_batches <= 64; ++micro_batches) {
    const int log2 = static_cast<int>(std::bit_width(static_cast<unsigned>(micro_batches))) - 1;
    for (const TreeNode& interval : all_intervals(micro_batches)) {
      const int bound = interval.first == 0 ? log2 + 1 : 2 * log2;
      ASSERT_LE(held_gradient_sets({interval}, micro_batches), bound);
    }
  }
  EXPECT_EQ(held_gradient_sets({{0, 1}}, 1), 1);
}

// Returns what is held after each owner's nodes came, merged by looking for any two neighbours.
int received_by_search(const std::vector<TreeNode>& own,
                       const std::vector<std::vector<TreeNode>>& others, int micro_batches) {
  std::set<TreeNode> here(own.begin(), own.end());
  const std::set<TreeNode> mine = here;
  const auto merge_any = [&] {
    for (const TreeNode& left : here) {
      for (const TreeNode& right : here) {
        const TreeNode both{left.first, right.end};
        if (left.end != right.first || !is_tree_node(both, micro_batches)) continue;
        if (children(both) != std::pair(left, right)) continue;
        const TreeNode halves[] = {left, right};
        for (const TreeNode& half : halves) here.erase(half);
        here.insert(both);
        return true;
      }
    }
    return false;
  };
  int most = 0;
  for (const std::vector<TreeNode>& came : others) {
    here.insert(came.begin(), came.end());
    const auto foreign = std::count_if(here.begin(), here.end(),
                                       [&](const TreeNode& node) { return !mine.contains(node); });
    most = std::max(most, static_cast<int>(foreign));
    while (merge_any()) {
    }
  }
  return most;
}

TEST(GradientTreeShape, ReceivedSetsAreThoseOfALiteralSimulation) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const int micro_batches = std::uniform_int_distribution<int>(1, 40)(random);
    const std::size_t owners = 1 + random() % 5;
    std::vector<std::vector<TreeNode>> nodes(owners);
    for (int m = 0; m < micro_batches; ++m) nodes[random() % owners].push_back({m, m + 1});
    for (auto& owned : nodes) owned = maximal_nodes(owned, micro_batches);
    const ReceivedSets received(nodes, micro_batches);
    const std::size_t self = random() % owners;
    const int most = received.most(self);
    const std::vector<TreeNode> own = nodes[self];
    nodes.erase(nodes.begin() + static_cast<std::ptrdiff_t>(self));
    ASSERT_EQ(most, received_by_search(own, nodes, micro_batches));
  }
}

bool breaks_an_invariant(const std::function<void()>& call) {
  try {
    call();
  } catch (const std::logic_error&) {
    return true;
  }
  return false;
}

TEST(GradientTreeShape, RefusesWhatIsNoNode) {
  EXPECT_TRUE(breaks_an_invariant([] { children({3, 4}); }));
  EXPECT_TRUE(breaks_an_invariant([] { parent({1, 3}, 4); }));
  EXPECT_TRUE(breaks_an_invariant([] { sibling({0, 5}, 4); }));
}

TEST(GradientTreeShape, RefusesIntervalsOutOfOrderOrOutsideTheStep) {
  EXPECT_TRUE(breaks_an_invariant([] { maximal_nodes({{2, 4}, {0, 1}}, 4); }));
  EXPECT_TRUE(breaks_an_invariant([] { maximal_nodes({{0, 3}, {2, 4}}, 4); }));
  EXPECT_TRUE(breaks_an_invariant([] { maximal_nodes({{-1, 3}}, 4); }));
  EXPECT_TRUE(breaks_an_invariant([] { held_gradient_sets({{0, 5}}, 4); }));
}

TEST(GradientTreeShape, TheCoverOfAnIntervalCountsItsNodesAndItsSets) {
  for (int micro_batches = 1; micro_batches <= 70; ++micro_batches) {
    for (int first = 0; first <= micro_batches; ++first) {
      for (int end = first; end <= micro_batches; ++end) {
        const TreeNode owned{first, end};
        const IntervalCover expected{static_cast<int>(maximal_nodes({owned}, micro_batches).size()),
                                     held_gradient_sets({owned}, micro_batches)};
        ASSERT_EQ(cover_interval(owned, micro_batches), expected)
            << first << " to " << end << " of " << micro_batches;
      }
    }
  }
}

}  // namespace
}  // namespace frazil
