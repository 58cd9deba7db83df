#include "planner/partition/ideals.h"

#include <algorithm>

#include "profiles/error.h"

namespace frazil {
namespace {

// Finds ideals by their members: a hash table of their numbers with open addressing.
class IdealTable {
 public:
  explicit IdealTable(const IdealLattice& lattice) : lattice_(lattice), slots_(1024, kNone) {}

  // Returns the number of the ideal with these members. If there is none, adds it as `fresh`.
  std::int32_t find_or_add(const std::vector<std::uint64_t>& members, std::int32_t fresh) {
    if (2 * (count_ + 1) > slots_.size()) grow();
    std::size_t slot = hash(members.data()) & (slots_.size() - 1);
    for (; slots_[slot] != kNone; slot = (slot + 1) & (slots_.size() - 1)) {
      if (std::equal(members.begin(), members.end(), members_of(slots_[slot]))) return slots_[slot];
    }
    slots_[slot] = fresh;
    ++count_;
    return fresh;
  }

 private:
  static constexpr std::int32_t kNone = -1;

  const std::uint64_t* members_of(std::int32_t ideal) const {
    return lattice_.members.data() + static_cast<std::size_t>(ideal) * lattice_.words;
  }

  std::size_t hash(const std::uint64_t* members) const {
    std::uint64_t value = 0x9e3779b97f4a7c15;
    for (std::size_t w = 0; w < lattice_.words; ++w) {
      value = (value ^ members[w]) * 0xff51afd7ed558ccd;
      value ^= value >> 32;
    }
    return value;
  }

  void grow() {
    const std::vector<std::int32_t> before = std::move(slots_);
    slots_.assign(2 * before.size(), kNone);
    for (const std::int32_t ideal : before) {
      if (ideal == kNone) continue;
      std::size_t slot = hash(members_of(ideal)) & (slots_.size() - 1);
      while (slots_[slot] != kNone) slot = (slot + 1) & (slots_.size() - 1);
      slots_[slot] = ideal;
    }
  }

  const IdealLattice& lattice_;
  std::vector<std::int32_t> slots_;
  std::size_t count_ = 0;
};

// Lists ideals breadth first, so that larger ideals come later.
class IdealLister {
 public:
  IdealLister(const PartGraph& graph, const std::vector<std::size_t>& order, std::size_t extra,
              std::size_t most)
      : graph_(graph), order_(order), extra_(extra), most_(most), table_(lattice_) {
    ENSURE(order.size() == graph.parts.size(), "an order of all parts");
    lattice_.words = (graph.parts.size() + 63) / 64;
  }

  std::optional<IdealLattice> list() {
    std::vector<std::size_t> ready;
    for (std::size_t p = 0; p < graph_.parts.size(); ++p) {
      if (graph_.parts[p].before.empty()) ready.push_back(p);
    }
    add(std::vector<std::uint64_t>(lattice_.words), 0, std::move(ready));
    for (std::size_t ideal = 0; ideal < ready_.size(); ++ideal) {
      lattice_.first_step.push_back(lattice_.steps.size());
      const std::vector<std::size_t> open = std::move(ready_[ideal]);
      ready_[ideal] = {};
      for (const std::size_t part : open) extend(ideal, part, open);
      if (ready_.size() > most_) return std::nullopt;
    }
    lattice_.first_step.push_back(lattice_.steps.size());
    return std::move(lattice_);
  }

 private:
  static bool holds(const std::vector<std::uint64_t>& members, std::size_t part) {
    return (members[part / 64] >> (part % 64) & 1) != 0;
  }

  void extend(std::size_t ideal, std::size_t part, const std::vector<std::size_t>& open) {
    const auto begin =
        lattice_.members.begin() + static_cast<std::ptrdiff_t>(ideal * lattice_.words);
    std::vector<std::uint64_t> members(begin, begin + static_cast<std::ptrdiff_t>(lattice_.words));
    members[part / 64] |= std::uint64_t{1} << (part % 64);
    const std::size_t size = sizes_[ideal] + 1;
    std::size_t whole = beginnings_[ideal];  // how many of the order are in it without a gap
    while (whole < order_.size() && holds(members, order_[whole])) ++whole;
    if (size - whole > extra_) {
      lattice_.is_complete = false;
      return;
    }
    const auto fresh = static_cast<std::int32_t>(ready_.size());
    const std::int32_t number = table_.find_or_add(members, fresh);
    lattice_.steps.push_back({static_cast<std::int32_t>(part), number});
    if (number != fresh) return;
    std::vector<std::size_t> ready;
    for (const std::size_t other : open) {
      if (other != part) ready.push_back(other);
    }
    for (const std::size_t next : graph_.parts[part].after) {
      const std::vector<std::size_t>& before = graph_.parts[next].before;
      if (std::all_of(before.begin(), before.end(),
                      [&](std::size_t other) { return holds(members, other); })) {
        ready.push_back(next);
      }
    }
    add(members, whole, std::move(ready));
    sizes_.back() = size;
  }

  void add(const std::vector<std::uint64_t>& members, std::size_t whole,
           std::vector<std::size_t> ready) {
    if (ready_.empty()) table_.find_or_add(members, 0);
    lattice_.members.insert(lattice_.members.end(), members.begin(), members.end());
    sizes_.push_back(0);
    beginnings_.push_back(whole);
    ready_.push_back(std::move(ready));
  }

  const PartGraph& graph_;
  const std::vector<std::size_t>& order_;
  std::size_t extra_;
  std::size_t most_;
  IdealLattice lattice_;
  IdealTable table_;
  std::vector<std::vector<std::size_t>> ready_;  // parts that may be added, until they are
  std::vector<std::size_t> sizes_;
  std::vector<std::size_t> beginnings_;
};

}  // namespace

std::optional<IdealLattice> list_ideals(const PartGraph& graph,
                                        const std::vector<std::size_t>& order, std::size_t extra,
                                        std::size_t most) {
  return IdealLister(graph, order, extra, most).list();
}

}  // namespace frazil
