#pragma once
// How a batch can be dealt to groups in contiguous shares: what that says of the largest share and
// of the gradient tree (sim/gradient_tree_shape.h). Either some owner ships two nodes of the tree
// or more, or every share is one node: then the largest is no smaller than when the largest node is
// split again and again. Equal groups get equal shares up to one.

#include <array>
#include <compare>
#include <vector>

#include "planner/bounds/device_groups.h"

namespace frazil {

// Of so many units to equal groups: equal up to one. Those with one more come first, or last, where
// the very last micro-batch is a short one.
int equal_share(int units, int groups, int group, bool has_short);

// Some group has so many whole micro-batches or more, and some owner so many nodes.
struct BatchDeal {
  int micro_batches = 1;
  int nodes = 1;
  int ways = 1;  // directions: so many devices of a group own a layer
  friend auto operator<=>(const BatchDeal&, const BatchDeal&) = default;
};

class BatchDeals {
 public:
  // The space must outlive this.
  BatchDeals(const SearchSpace& space, const DeviceGroupClasses& machines);

  // Every deal among the groups of a cell is one of these.
  std::vector<BatchDeal> list(const ShapeCell& cell) const;
  // The same of schedules that run one way alone, or both ways.
  std::vector<BatchDeal> list(const ShapeCell& cell, int ways) const;

 private:
  struct Replicas {
    std::array<int, 2> largest{1, 1};  // by direction: leaves of the largest of so many nodes
    std::array<int, 2> nodes{1, 1};    // of equal shares
  };
  std::vector<Replicas> look_up(int size) const;

  const SearchSpace& space_;
  bool alike_ = false;  // all groups of one length are
  bool exact_ = false;
  std::vector<std::vector<Replicas>> by_size_;  // and replicas
};

}  // namespace frazil
