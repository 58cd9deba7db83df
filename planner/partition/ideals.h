#pragma once
// The ideals of a part graph: sets of parts that hold with a part all that precedes it. A
// contiguous split is a chain of ideals; a device holds what two consecutive ideals differ by. The
// number of ideals grows exponentially with the width of the graph, so a family may be listed
// instead: the ideals near the beginnings of one order.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "planner/partition/part_graph.h"

namespace frazil {

struct IdealLattice {
  struct Step {
    std::int32_t part = 0;   // the part added to an ideal
    std::int32_t ideal = 0;  // the ideal that this gives
  };

  std::size_t words = 0;                // 64 parts each
  std::vector<std::uint64_t> members;   // `words` for each ideal; ideal 0 is empty, the last full
  std::vector<std::size_t> first_step;  // of each ideal, and the end
  std::vector<Step> steps;
  bool is_complete = true;  // no ideal of the graph is missing

  std::int32_t size() const { return static_cast<std::int32_t>(first_step.size()) - 1; }
  bool holds(std::int32_t ideal, std::size_t part) const {
    return (members[static_cast<std::size_t>(ideal) * words + part / 64] >> (part % 64) & 1) != 0;
  }
};

// Lists the ideals made of a beginning of `order` (topological) and at most `extra` parts from
// beyond the first part that is missing; none if there are more than `most`. A larger ideal has a
// larger number.
std::optional<IdealLattice> list_ideals(const PartGraph& graph,
                                        const std::vector<std::size_t>& order, std::size_t extra,
                                        std::size_t most);

}  // namespace frazil
