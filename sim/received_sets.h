#pragma once
// How many gradient sets an owner of nodes of the gradient tree (sim/gradient_tree_shape.h) holds
// while the other owners ship theirs to it, for all owners of one reduction. The part of the tree
// above the owners' nodes is walked once; each owner then takes time in proportion to the nodes.

#include <array>
#include <cstddef>
#include <vector>

#include "sim/gradient_tree_shape.h"

namespace frazil {

class ReceivedSets {
 public:
  // Takes the maximal nodes of each owner, in the order in which they are shipped. Requires: they
  // are nodes of the tree over `micro_batches` leaves.
  ReceivedSets(const std::vector<std::vector<TreeNode>>& owners, int micro_batches);

  std::size_t owners() const { return nodes_.size(); }
  // Returns how many nodes an owner has itself.
  std::size_t own(std::size_t owner) const { return nodes_[owner].size(); }
  // Returns the most sets held at once, besides its own, by owner `self`. It takes all nodes of
  // each other owner, one owner after another, and merges as soon as both children are there. A
  // merged node is a set besides its own.
  int most(std::size_t self) const;

 private:
  static constexpr int kNone = -1;
  struct Place {
    int parent = kNone;
    int sibling = kNone;  // none while no owner's node lies there or below
    std::array<int, 2> children{kNone, kNone};
  };

  int find(const TreeNode& node, int micro_batches);
  int find_child(int parent, std::size_t side);

  std::vector<Place> places_;            // the root, then nodes below their parents
  std::vector<std::vector<int>> nodes_;  // by owner: its places
};

}  // namespace frazil
