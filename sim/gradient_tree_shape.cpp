#include "sim/gradient_tree_shape.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "profiles/error.h"

namespace frazil {
namespace {

bool holds(const TreeNode& outer, const TreeNode& inner) {
  return outer.first <= inner.first && inner.end <= outer.end;
}

// Returns the nodes from the root down to the smallest that holds `node`; none if the root does
// not.
std::vector<TreeNode> path_to(const TreeNode& node, int micro_batches) {
  std::vector<TreeNode> path;
  TreeNode at{0, micro_batches};
  if (node.leaves() < 1 || !holds(at, node)) {
    return path;
  }
  path.push_back(at);
  while (at.leaves() > 1) {
    const auto [left, right] = children(at);
    if (!holds(left, node) && !holds(right, node)) {
      break;
    }
    at = holds(left, node) ? left : right;
    path.push_back(at);
  }
  return path;
}

// Joins neighbouring intervals that touch and drops empty ones.
std::vector<TreeNode> join_touching(const std::vector<TreeNode>& owned, int micro_batches) {
  std::vector<TreeNode> joined;
  int previous_end = 0;
  for (const TreeNode& interval : owned) {
    ENSURE(previous_end <= interval.first && interval.first <= interval.end &&
               interval.end <= micro_batches,
           "owned micro-batches are sorted, disjoint and inside the step");
    previous_end = interval.end;
    if (interval.leaves() == 0) {
      continue;
    }
    if (!joined.empty() && joined.back().end == interval.first) {
      joined.back().end = interval.end;
    } else {
      joined.push_back(interval);
    }
  }
  return joined;
}

void collect_maximal(const TreeNode& node, const TreeNode& interval, std::vector<TreeNode>& found) {
  if (holds(interval, node)) {
    found.push_back(node);
    return;
  }
  if (node.end <= interval.first || interval.end <= node.first) {
    return;
  }
  const auto [left, right] = children(node);
  collect_maximal(left, interval, found);
  collect_maximal(right, interval, found);
}

// The sets below a node that an owner holds while it adds its leaves of the node one by one.
struct HeldSets {
  int most = 0;  // the most held just before a leaf came
  int last = 0;  // held in the end
};

// Requires: `owned` is sorted and disjoint, and its intervals do not touch.
HeldSets most_held_below(const TreeNode& node, const std::vector<TreeNode>& owned) {
  const auto meets = [&](const TreeNode& interval) {
    return interval.first < node.end && node.first < interval.end;
  };
  const auto interval = std::find_if(owned.begin(), owned.end(), meets);
  if (interval == owned.end()) return {};
  const bool whole = holds(*interval, node);
  if (whole && std::has_single_bit(static_cast<unsigned>(node.leaves()))) {
    return {std::countr_zero(static_cast<unsigned>(node.leaves())), 1};
  }
  const auto [left, right] = children(node);
  const HeldSets before = most_held_below(left, owned);
  const HeldSets after = most_held_below(right, owned);
  const bool right_has_some = after.last > 0;
  const int most = right_has_some ? std::max(before.most, before.last + after.most) : before.most;
  return {most, whole ? 1 : before.last + after.last};
}

}  // namespace

bool is_tree_node(const TreeNode& node, int micro_batches) {
  const std::vector<TreeNode> path = path_to(node, micro_batches);
  return !path.empty() && path.back() == node;
}

std::pair<TreeNode, TreeNode> children(const TreeNode& node) {
  ENSURE(node.leaves() > 1, "a leaf has no children");
  const auto below = static_cast<unsigned>(node.leaves() - 1);
  const int middle = node.first + static_cast<int>(std::bit_floor(below));
  return {{node.first, middle}, {middle, node.end}};
}

std::optional<TreeNode> parent(const TreeNode& node, int micro_batches) {
  const std::vector<TreeNode> path = path_to(node, micro_batches);
  ENSURE(!path.empty() && path.back() == node, "a node of the tree");
  if (path.size() == 1) {
    return std::nullopt;
  }
  return path[path.size() - 2];
}

std::optional<TreeNode> sibling(const TreeNode& node, int micro_batches) {
  const std::optional<TreeNode> above = parent(node, micro_batches);
  if (!above) {
    return std::nullopt;
  }
  const auto [left, right] = children(*above);
  return left == node ? right : left;
}

std::vector<TreeNode> maximal_nodes(const std::vector<TreeNode>& owned, int micro_batches) {
  std::vector<TreeNode> found;
  for (const TreeNode& interval : join_touching(owned, micro_batches)) {
    collect_maximal({0, micro_batches}, interval, found);
  }
  return found;
}

int held_gradient_sets(const std::vector<TreeNode>& owned, int micro_batches) {
  const std::vector<TreeNode> joined = join_touching(owned, micro_batches);
  if (joined.empty()) return 0;
  return most_held_below({0, micro_batches}, joined).most + 1;
}

// The nodes of an interval are ascending powers of two up to a leaf `middle` and descending ones
// from there on; or, if the interval ends with the step, ascending ones up to the last node, which
// may hold any number of leaves. With i nodes before it, a node of n leaves has i + floor(log2 n)
// sets held before its last leaf comes, so of each part the largest node decides.
IntervalCover cover_interval(const TreeNode& owned, int micro_batches) {
  ENSURE(0 <= owned.first && owned.first <= owned.end && owned.end <= micro_batches,
         "owned micro-batches are inside the step");
  if (owned.leaves() == 0) return {};
  const auto first = static_cast<unsigned>(owned.first);
  const auto end = static_cast<unsigned>(owned.end);
  const auto level = [](unsigned leaves) { return static_cast<int>(std::bit_width(leaves)) - 1; };
  unsigned middle = end;
  if (owned.end == micro_batches) {
    // The nodes that end with the step begin where the lowest bits of the end are cleared.
    while (middle > 0 && (middle & (middle - 1)) >= first) middle &= middle - 1;
  }
  const bool has_last = middle < end;
  if (!has_last) middle = end >> level(first ^ end) << level(first ^ end);
  const unsigned before = middle - first;
  const unsigned after = end - middle;
  const int ascending = std::popcount(before);
  IntervalCover cover;
  cover.nodes = ascending + (has_last ? 1 : std::popcount(after));
  if (before > 0) cover.sets = ascending + level(before);
  if (after > 0) cover.sets = std::max(cover.sets, ascending + level(after) + 1);
  return cover;
}

}  // namespace frazil
