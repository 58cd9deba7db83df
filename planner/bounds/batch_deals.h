#pragma once
// Lists the ways to deal a batch to groups in contiguous shares of micro-batches, as far as a lower
// bound needs them: the size of the largest share, and how many nodes of the gradient tree
// (sim/gradient_tree_shape.h) an owner ships. Either some owner ships two nodes or more, or every
// share is one node; then the largest share is no smaller than the largest node that is left when
// the largest node is split again and again. Equal groups get shares that differ by one unit at
// most.

#include <array>
#include <compare>
#include <vector>

#include "planner/bounds/device_groups.h"

namespace frazil {

// Returns the share of group `group` when `units` units are dealt to equal groups; shares differ by
// one at most. The groups with one more come first, or last if `has_short`: the very last
// micro-batch is then a short one.
int equal_share(int units, int groups, int group, bool has_short);

// Some group has at least so many whole micro-batches, and some owner ships at least so many nodes.
struct BatchDeal {
  int micro_batches = 1;
  int nodes = 1;
  int ways = 1;  // directions: so many devices of a group own a layer
  friend auto operator<=>(const BatchDeal&, const BatchDeal&) = default;
};

class BatchDeals {
 public:
  // The space must outlive this.
  BatchDeals(const SearchSpace& space, const DeviceGroupClasses& device_classes);

  // Returns the deals of a cell: whatever the shares of its groups are, one of these deals holds.
  std::vector<BatchDeal> list(const ShapeCell& cell) const;
  // Returns the deals of a cell for schedules that run one way (`ways` 1) or both ways (2).
  std::vector<BatchDeal> list(const ShapeCell& cell, int ways) const;

 private:
  struct Replicas {
    std::array<int, 2> largest{1, 1};  // by ways - 1: leaves of the largest share
    std::array<int, 2> nodes{1, 1};    // by ways - 1: most nodes of an equal share
  };
  std::vector<Replicas> look_up(int size) const;

  const SearchSpace& space_;
  bool alike_ = false;  // all groups of one length are alike
  bool exact_ = false;
  std::vector<std::vector<Replicas>> by_size_;  // by size and replicas
};

}  // namespace frazil
