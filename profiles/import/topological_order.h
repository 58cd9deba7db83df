#pragma once
// Sorts a graph topologically, or finds a cycle that forbids it.

#include <cstddef>
#include <utility>
#include <vector>

namespace frazil {

struct TopologicalOrder {
  std::vector<std::size_t> nodes;  // every edge runs forward; all nodes, unless there is a cycle
  std::vector<std::size_t> cycle;  // the edges of one cycle; empty if there is no cycle
};

// Orders the nodes 0 to `nodes` - 1 by Kahn's algorithm with a heap: the smallest of the nodes that
// may come next does. `edges` are pairs (from, to) below `nodes`.
TopologicalOrder order_topologically(std::size_t nodes,
                                     const std::vector<std::pair<std::size_t, std::size_t>>& edges);

}  // namespace frazil
