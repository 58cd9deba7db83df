#pragma once
// The order of a graph that came in any order, or a cycle that forbids one.

#include <cstddef>
#include <utility>
#include <vector>

namespace frazil {

struct TopologicalOrder {
  std::vector<std::size_t> nodes;  // every edge runs forward; all nodes, unless there is a cycle
  std::vector<std::size_t> cycle;  // the edges of one cycle; empty: there is none
};

// Of nodes that may come next the smallest does (Kahn's algorithm with a heap). `edges` are pairs
// (from, to) below `nodes`.
TopologicalOrder order_topologically(std::size_t nodes,
                                     const std::vector<std::pair<std::size_t, std::size_t>>& edges);

}  // namespace frazil
