#include "planner/named/block_partition.h"

#include <algorithm>
#include <cstdint>

#include "profiles/error.h"

namespace frazil {
namespace {

class Blocks {
 public:
  Blocks(std::span<const Duration> costs, int blocks) : costs_(costs) {
    const auto [least, most] = std::minmax_element(costs.begin(), costs.end());
    least_ = least->count();
    range_ = most->count() - least_;
    const auto count = static_cast<std::size_t>(blocks);
    const std::size_t each = costs.size() / count;
    for (std::size_t b = 1; b < count; ++b) ends_.push_back(b * each);
    ends_.push_back(costs.size());
    for (std::size_t b = 0; b < count; ++b) {
      std::int64_t& size = sizes_.emplace_back(0);
      for (std::size_t i = begin_of(b); i < ends_[b]; ++i) size += weight(i);
    }
  }

  void balance() {
    std::size_t largest = find_largest();
    for (std::size_t smallest = find_smallest(); sizes_[largest] > sizes_[smallest] + range_;
         smallest = find_smallest()) {
      const std::size_t giver = largest < smallest ? take_from_left(smallest, largest)
                                                   : take_from_right(smallest, largest);
      if (giver == largest) largest = find_largest();
    }
  }

  std::vector<int> cuts() const {
    std::vector<int> cuts;
    for (std::size_t b = 0; b + 1 < ends_.size(); ++b) cuts.push_back(static_cast<int>(ends_[b]));
    return cuts;
  }

 private:
  std::int64_t weight(std::size_t i) const { return costs_[i].count() - least_; }
  std::size_t begin_of(std::size_t block) const { return block == 0 ? 0 : ends_[block - 1]; }
  bool is_empty(std::size_t block) const { return begin_of(block) == ends_[block]; }

  // Returns the last of equally large blocks.
  std::size_t find_largest() const {
    const auto last = std::max_element(sizes_.rbegin(), sizes_.rend());
    return static_cast<std::size_t>(sizes_.rend() - last) - 1;
  }
  // Returns the first of equally small blocks.
  std::size_t find_smallest() const {
    return static_cast<std::size_t>(std::min_element(sizes_.begin(), sizes_.end()) -
                                    sizes_.begin());
  }

  // Moves the last element of the block left of `to` into `to`, which lies right of the largest
  // block; take_from_right mirrors this. Both return the block that gave the element.
  std::size_t take_from_left(std::size_t to, std::size_t largest) {
    while (to - 1 > largest && is_empty(to - 1)) --to;
    --ends_[to - 1];
    move(to - 1, to, ends_[to - 1]);
    return to - 1;
  }
  std::size_t take_from_right(std::size_t to, std::size_t largest) {
    while (to + 1 < largest && is_empty(to + 1)) ++to;
    move(to + 1, to, ends_[to]);
    ++ends_[to];
    return to + 1;
  }
  void move(std::size_t from, std::size_t to, std::size_t element) {
    sizes_[from] -= weight(element);
    sizes_[to] += weight(element);
  }

  std::span<const Duration> costs_;
  std::int64_t least_ = 0;  // smallest element
  std::int64_t range_ = 0;  // largest element less the smallest
  std::vector<std::size_t> ends_;
  std::vector<std::int64_t> sizes_;
};

}  // namespace

std::vector<int> partition_in_blocks(std::span<const Duration> costs, int blocks) {
  ENSURE(blocks >= 1 && static_cast<std::size_t>(blocks) <= costs.size(),
         "as many elements as blocks, and one block");
  Blocks partition(costs, blocks);
  partition.balance();
  return partition.cuts();
}

}  // namespace frazil
