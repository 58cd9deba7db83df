#include "sim/received_sets.h"

#include <algorithm>
#include <cstdint>

#include "profiles/error.h"

namespace frazil {

ReceivedSets::ReceivedSets(const std::vector<std::vector<TreeNode>>& owners, int micro_batches)
    : places_(1) {
  nodes_.reserve(owners.size());
  for (const std::vector<TreeNode>& owned : owners) {
    std::vector<int>& own = nodes_.emplace_back();
    for (const TreeNode& node : owned) own.push_back(find(node, micro_batches));
  }
}

// Returns the place of a node, made on the way down from the root.
int ReceivedSets::find(const TreeNode& node, int micro_batches) {
  int place = 0;
  TreeNode at{0, micro_batches};
  while (at != node) {
    ENSURE(at.first <= node.first && node.end <= at.end && at.leaves() > 1, "a node of the tree");
    const auto [left, right] = children(at);
    const bool is_right = node.first >= right.first;
    place = find_child(place, is_right ? 1 : 0);
    at = is_right ? right : left;
  }
  return place;
}

int ReceivedSets::find_child(int parent, std::size_t side) {
  const auto of_parent = static_cast<std::size_t>(parent);
  const int known = places_[of_parent].children[side];
  if (known != kNone) return known;
  const auto made = static_cast<int>(places_.size());
  const int other = places_[of_parent].children[1 - side];
  places_[of_parent].children[side] = made;
  if (other != kNone) places_[static_cast<std::size_t>(other)].sibling = made;
  places_.push_back({parent, other, {kNone, kNone}});
  return made;
}

int ReceivedSets::most(std::size_t self) const {
  enum class Held : std::uint8_t { kNo, kOwn, kReceived };
  std::vector<Held> held_at(places_.size(), Held::kNo);
  for (const int place : nodes_[self]) held_at[static_cast<std::size_t>(place)] = Held::kOwn;
  int held = 0;
  int most = 0;
  for (std::size_t owner = 0; owner < nodes_.size(); ++owner) {
    if (owner == self) continue;
    held += static_cast<int>(nodes_[owner].size());
    most = std::max(most, held);
    for (const int came : nodes_[owner]) {
      auto place = static_cast<std::size_t>(came);
      while (places_[place].sibling != kNone) {
        Held& other = held_at[static_cast<std::size_t>(places_[place].sibling)];
        if (other == Held::kNo) break;
        if (other == Held::kReceived) --held;
        other = Held::kNo;
        place = static_cast<std::size_t>(places_[place].parent);
      }
      if (held_at[place] == Held::kNo) held_at[place] = Held::kReceived;
    }
  }
  return most;
}

}  // namespace frazil
