#pragma once
// The static engine. All orders are fixed, so time is one sweep over a topological order, without a
// queue: start(t) = max(end of the task before it on its lane, end(on) + delay over its
// dependencies), end = start + price. Lane order counts as a dependency. A graph is compiled once
// and evaluated for any prices. This is the longest path in a DAG and takes O(tasks +
// dependencies).

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "sim/task_graph.h"

namespace frazil {

// A graph with its tasks renumbered into sweep order; `task_at[i]` is the id in the graph. Tasks of
// one lane keep their order. Equal graphs give equal sweeps.
struct CompiledGraph {
  struct Incoming {
    std::uint32_t on = 0;  // sweep position, always smaller than the task's
    WorkId delay = 0;      // no delay: `works`, one past the table
  };

  std::vector<TaskId> task_at;
  std::vector<WorkId> work;                   // by sweep position
  std::vector<LaneId> lane;                   // by sweep position
  std::vector<std::uint32_t> first_incoming;  // CSR over sweep positions, size + 1 entries
  std::vector<Incoming> incoming;             // dependencies, without those of lane order
  std::size_t works = 0;
  std::size_t lanes = 0;
};

// Ends in ns; one object may be reused for several evaluations. start = end - price of the task's
// work.
struct SweepTimes {
  std::vector<std::int64_t> end;       // by sweep position
  std::vector<std::int64_t> lane_end;  // by lane: the end of its last task, 0 for an empty lane
  std::vector<std::int64_t> prices;    // the prices evaluated; a last 0 stands for no delay
};

// Compiles a graph. Throws InfeasibleError when the orders and dependencies form a cycle (a
// deadlock); the sentence names tasks on the cycle through `name_of` (default: "task 17 on device
// 2"). Requires: lanes, works and tasks named in the graph exist; no task depends on itself.
CompiledGraph compile(const TaskGraph& graph,
                      const std::function<std::string(TaskId)>& name_of = {});
// Returns the tasks of one cycle, from the lowest id on; none if there is no cycle. Each task waits
// for the next, and the last for the first, by a dependency or because the next comes earlier on
// its lane.
std::vector<TaskId> find_cycle(const TaskGraph& graph);

// Evaluates a graph into `times`; `prices[w]` is the time of work w. Overflow past 2^63 ns is a bug
// of the caller. Requires: a price for every work.
void evaluate(const CompiledGraph& graph, std::span<const Duration> prices, SweepTimes& times);
// Returns the makespan: the latest end, for some task always starts at 0. Returns 0 without tasks.
Duration latest_end(const SweepTimes& times);

}  // namespace frazil
