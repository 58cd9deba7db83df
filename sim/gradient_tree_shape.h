#pragma once
// The shape of the gradient sum: one binary tree over the global micro-batches 0..M-1 of a step,
// the same for every plan, so that every plan adds in the same order. The tree is that of a binary
// counter: equal levels merge; at the end leftovers fold from right to left. M=6 is
// ((01)(23))+(45), M=7 is ((01)(23))+((45)+6). Equivalently: a node of n > 1 leaves splits after
// the largest power of two below n.

#include <compare>
#include <optional>
#include <utility>
#include <vector>

namespace frazil {

// A subtree: micro-batches [first, end).
struct TreeNode {
  int first = 0;
  int end = 0;

  int leaves() const { return end - first; }
  friend auto operator<=>(const TreeNode&, const TreeNode&) = default;
};

// True if `node` is a subtree of the tree over `micro_batches` leaves.
bool is_tree_node(const TreeNode& node, int micro_batches);
// Returns the two children of a node. Requires: more than one leaf.
std::pair<TreeNode, TreeNode> children(const TreeNode& node);
// Returns the smallest subtree that properly holds `node`; none for the root.
std::optional<TreeNode> parent(const TreeNode& node, int micro_batches);
// Returns the other child of the node's parent; none for the root.
std::optional<TreeNode> sibling(const TreeNode& node, int micro_batches);

// Returns the largest subtrees whose leaves all lie in the owned intervals [first, end), left to
// right: what an owner ships. Requires: `owned` is sorted and disjoint.
std::vector<TreeNode> maximal_nodes(const std::vector<TreeNode>& owned, int micro_batches);

// Returns the most gradient sets held at once by an owner that adds its leaves in ascending order
// and merges as soon as both children are there; the new leaf counts. The result is at most
// floor(log2 M)+1 for an owner of [0, n) and 2 floor(log2 M) for any contiguous interval (M >= 2).
int held_gradient_sets(const std::vector<TreeNode>& owned, int micro_batches);

// What an owner of one interval ships and holds, without listing the nodes.
struct IntervalCover {
  int nodes = 0;  // as many as maximal_nodes() lists
  int sets = 0;   // held_gradient_sets()
  friend bool operator==(const IntervalCover&, const IntervalCover&) = default;
};
// Requires: the interval lies inside the step.
IntervalCover cover_interval(const TreeNode& owned, int micro_batches);

}  // namespace frazil
