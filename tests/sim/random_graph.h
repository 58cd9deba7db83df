#pragma once
// Draws random graphs of work for property tests.

#include <cstdint>
#include <random>
#include <vector>

#include "sim/task_graph.h"

namespace frazil {

using Random = std::mt19937_64;

// Draws a whole number in the closed range.
int draw(Random& random, int low, int high);

// A random graph without cycles. `line` numbers the tasks in an order that respects all arrows; ids
// are another interleaving of the lanes, drawn from `shuffle`, so arrows also point to later ids.
struct RandomGraph {
  TaskGraph graph;
  std::vector<TaskId> id_of;  // by line number
};

// Draws a graph from `seed` and its interleaving from `shuffle`; equal seeds give equal lines.
RandomGraph make_random_graph(std::uint64_t seed, std::uint64_t shuffle);

// Draws a price for every work of the graph, a quarter of the prices zero.
std::vector<Duration> random_prices(Random& random, const TaskGraph& graph);

}  // namespace frazil
