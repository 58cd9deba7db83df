#pragma once
// The gradient sum of one group of tensors, as the binary tree of sim/gradient_tree_shape.h: leaves
// (or whole subtrees from other owners) come in any order, two halves are added as soon as both are
// there, early ones wait by key. The result's bits do not depend on who added what where.

#include <map>
#include <set>
#include <vector>

#include "exec/tensors/tensors.h"
#include "sim/gradient_tree_shape.h"

namespace frazil {

class GradientTree {
 public:
  explicit GradientTree(int micro_batches) : micro_batches_(micro_batches) {}

  // Takes a subtree's sum; the tensors may be added to in place when nobody else holds them.
  // Requires: a node of the tree, not there yet.
  void add(TreeNode node, Tensors sum);
  // Likewise of tensors that others read: they are never written to.
  void add_shared(TreeNode node, Tensors sum);

  // The sums that could not be merged further, left to right; leaves the tree empty.
  std::vector<std::pair<TreeNode, Tensors>> take_nodes();
  // The sum of what has come, which need not be a subtree: right to left, as leftovers fold. Leaves
  // the tree empty. Requires: something has.
  Tensors take_folded();
  // The complete sum. Requires: every leaf has come.
  Tensors take_root();

  std::size_t held() const { return nodes_.size(); }
  // Of the sums here but those of the given nodes.
  std::int64_t count_bytes_beside(const std::vector<std::pair<TreeNode, Tensors>>& nodes) const;

 private:
  void merge(TreeNode node, Tensors sum, bool is_shared);

  int micro_batches_;
  std::map<TreeNode, Tensors> nodes_;
  std::set<TreeNode> shared_;  // of them
};

}  // namespace frazil
