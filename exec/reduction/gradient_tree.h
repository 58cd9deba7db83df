#pragma once
// GradientTree sums the gradients of one list of tensors along the binary tree of
// sim/gradient_tree_shape.h. Leaves, or whole subtrees from other owners, come in any order; two
// halves are added as soon as both are there, and a half that comes early waits. The bits of the
// result do not depend on which device added which nodes.

#include <map>
#include <set>
#include <vector>

#include "exec/tensors/tensors.h"
#include "sim/gradient_tree_shape.h"

namespace frazil {

class GradientTree {
 public:
  explicit GradientTree(int micro_batches) : micro_batches_(micro_batches) {}

  // Adds the sum of a subtree. The tensors may be written to in place when nobody else holds them.
  // Requires: `node` is a node of the tree and has not come yet.
  void add(TreeNode node, Tensors sum);
  // Adds the sum of a subtree whose tensors others read: they are never written to.
  void add_shared(TreeNode node, Tensors sum);

  // Returns the sums that could not be merged further, left to right, and leaves the tree empty.
  std::vector<std::pair<TreeNode, Tensors>> take_nodes();
  // Returns the sum of what has come, which need not be a subtree: the nodes are added right to
  // left, as leftovers fold. Leaves the tree empty. Requires: something has come.
  Tensors take_folded();
  // Returns the complete sum and leaves the tree empty. Requires: every leaf has come.
  Tensors take_root();

  std::size_t held() const { return nodes_.size(); }
  // Returns the bytes of the sums in the tree except those of the given nodes.
  std::int64_t count_bytes_beside(const std::vector<std::pair<TreeNode, Tensors>>& nodes) const;

 private:
  void merge(TreeNode node, Tensors sum, bool is_shared);

  int micro_batches_;
  std::map<TreeNode, Tensors> nodes_;
  std::set<TreeNode> shared_;  // nodes whose tensors others read
};

}  // namespace frazil
