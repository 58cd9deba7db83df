#include "planner/bounds/batch_deals.h"

#include <algorithm>
#include <queue>

#include "sim/gradient_tree_shape.h"

namespace frazil {
namespace {

// Returns the most nodes that one owner ships when `groups` groups get equal shares. Looks at the
// first eight groups at most and never at the last one, so it may be too low.
int most_nodes(int micro_batches, int groups, int ways, bool has_short) {
  constexpr int kLooked = 8;
  const int units = micro_batches / ways;
  int most = 1;
  int first = 0;
  for (int g = 0; g + 1 < groups && g < kLooked; ++g) {
    const int own = equal_share(units, groups, g, has_short && micro_batches % ways == 0);
    for (int way = 0; way < ways && own > 0; ++way) {
      const auto nodes = maximal_nodes({{first, first + own}}, micro_batches);
      most = std::max(most, static_cast<int>(nodes.size()));
      first += own;
    }
  }
  return most;
}

// Returns, for 1, 2, .. `most` nodes that together are the tree, the fewest leaves that the largest
// of these nodes can hold.
std::vector<int> split_largest(int micro_batches, std::size_t most) {
  const auto fewer = [](const TreeNode& a, const TreeNode& b) { return a.leaves() < b.leaves(); };
  std::priority_queue<TreeNode, std::vector<TreeNode>, decltype(fewer)> nodes(fewer);
  nodes.push({0, micro_batches});
  std::vector<int> largest;
  while (largest.size() < most) {
    const TreeNode next = nodes.top();
    largest.push_back(next.leaves());
    if (next.leaves() == 1) continue;
    nodes.pop();
    const auto [left, right] = children(next);
    nodes.push(left);
    nodes.push(right);
  }
  return largest;
}

}  // namespace

int equal_share(int units, int groups, int group, bool has_short) {
  const int more = units % groups;
  const bool has_more = has_short ? group >= groups - more : group < more;
  return units / groups + (has_more ? 1 : 0);
}

BatchDeals::BatchDeals(const SearchSpace& space, const DeviceGroupClasses& device_classes)
    : space_(space),
      alike_(device_classes.groups_are_alike()),
      exact_(space.options.reduction == ReductionMode::kExact && !space.options.overlap) {
  if (!exact_) return;
  for (const int size : space.options.micro_batch_sizes) by_size_.push_back(look_up(size));
}

std::vector<BatchDeals::Replicas> BatchDeals::look_up(int size) const {
  const int micro_batches = space_.micro_batches(size);
  const bool has_short = space_.options.batch_size % size != 0;
  const auto most = static_cast<std::size_t>(space_.most_replicas(size));
  const std::vector<int> largest = split_largest(micro_batches, 2 * most);
  std::vector<Replicas> by_replicas(most + 1);
  for (std::size_t r = 1; r <= most; ++r) {
    Replicas& entry = by_replicas[r];
    for (int ways = 1; ways <= 2; ++ways) {
      const auto at = static_cast<std::size_t>(ways - 1);
      // Two directions halve a share, and the second half may have one micro-batch more.
      entry.largest[at] = ways * largest[static_cast<std::size_t>(ways) * r - 1] - (ways - 1);
      if (alike_) entry.nodes[at] = most_nodes(micro_batches, static_cast<int>(r), ways, has_short);
    }
  }
  return by_replicas;
}

std::vector<BatchDeal> BatchDeals::list(const ShapeCell& cell, int ways) const {
  const int whole = space_.options.batch_size / cell.micro_batch_size;
  const int share = divide_up(whole, cell.replicas);
  // Schedules that run both ways take an even number of devices; no others are bounded.
  const bool even = cell.devices % 2 == 0 && cell.longer == 0;
  if (ways == 2 && !even) return {{share, 1, 1}};
  if (!exact_ || cell.replicas == 1) return {{share, 1, ways}};
  const auto& sizes = space_.options.micro_batch_sizes;
  const auto place = std::find(sizes.begin(), sizes.end(), cell.micro_batch_size);
  const Replicas& known = by_size_[static_cast<std::size_t>(place - sizes.begin())]
                                  [static_cast<std::size_t>(cell.replicas)];
  const auto at = static_cast<std::size_t>(ways - 1);
  if (alike_ && cell.longer == 0) return {{share, known.nodes[at], ways}};
  // The short micro-batch may be among the leaves of a node, and is not a whole one.
  const int has_short = space_.options.batch_size % cell.micro_batch_size == 0 ? 0 : 1;
  const int largest = known.largest[at] - has_short;
  if (largest <= share) return {{share, 1, ways}};
  return {{share, 2, ways}, {largest, 1, ways}};
}

std::vector<BatchDeal> BatchDeals::list(const ShapeCell& cell) const {
  std::vector<BatchDeal> deals = list(cell, 1);
  if (cell.devices % 2 != 0 || cell.longer > 0) return deals;
  for (const BatchDeal& deal : list(cell, 2)) deals.push_back(deal);
  return deals;
}

}  // namespace frazil
