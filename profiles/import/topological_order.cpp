#include "profiles/import/topological_order.h"

#include <functional>
#include <queue>

namespace frazil {
namespace {

using Edges = std::vector<std::pair<std::size_t, std::size_t>>;

// Walks backward from `start` until a node comes again. Every node that is left over has an edge
// from another such node, so the walk ends in a cycle.
std::vector<std::size_t> find_cycle(const std::vector<std::size_t>& edge_into, const Edges& edges,
                                    std::size_t start) {
  std::vector<char> seen(edge_into.size());
  std::size_t node = start;
  while (seen[node] == 0) {
    seen[node] = 1;
    node = edges[edge_into[node]].first;
  }
  std::vector<std::size_t> cycle;
  const std::size_t first = node;
  do {
    cycle.push_back(edge_into[node]);
    node = edges[edge_into[node]].first;
  } while (node != first);
  return {cycle.rbegin(), cycle.rend()};
}

}  // namespace

TopologicalOrder order_topologically(std::size_t nodes, const Edges& edges) {
  std::vector<std::vector<std::size_t>> leaving(nodes);
  std::vector<std::size_t> open(nodes);  // edges from nodes that have no place yet
  for (std::size_t e = 0; e < edges.size(); ++e) {
    leaving[edges[e].first].push_back(e);
    ++open[edges[e].second];
  }
  std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> ready;
  for (std::size_t n = 0; n < nodes; ++n) {
    if (open[n] == 0) ready.push(n);
  }
  TopologicalOrder order;
  while (!ready.empty()) {
    const std::size_t node = ready.top();
    ready.pop();
    order.nodes.push_back(node);
    for (const std::size_t e : leaving[node]) {
      if (--open[edges[e].second] == 0) ready.push(edges[e].second);
    }
  }
  if (order.nodes.size() == nodes) return order;
  std::vector<char> is_placed(nodes);
  for (const std::size_t node : order.nodes) is_placed[node] = 1;
  std::vector<std::size_t> edge_into(nodes);
  std::size_t start = 0;
  for (std::size_t e = 0; e < edges.size(); ++e) {
    if (is_placed[edges[e].first] != 0) continue;
    edge_into[edges[e].second] = e;
    start = edges[e].second;
  }
  order.cycle = find_cycle(edge_into, edges, start);
  return order;
}

}  // namespace frazil
