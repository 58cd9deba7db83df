#pragma once
// Simulates a graph of work with the static engine: prices the works, sweeps the tasks, and gives
// every task its action's name on a time line. Equal inputs give equal bytes on every machine.

#include <span>
#include <vector>

#include "profiles/setting.h"
#include "sim/memory.h"
#include "sim/task_graph.h"
#include "traces/timeline.h"

namespace frazil {

struct Simulation {
  Duration makespan{0};          // first start to last end over all tasks
  std::vector<TimePoint> start;  // by TaskId
  std::vector<TimePoint> end;
  std::vector<MemoryPeak> memory;  // by device
  bool extrapolated = false;
};

// Simulates a graph. Throws InfeasibleError on a cycle and for times that add up past 2^62 ns, and
// as price() does. `actions[t]`, if given, names task t in the sentence.
Simulation simulate(const TaskGraph& graph, Setting setting, std::span<const Action> actions = {});

// Returns, by device, the memory held over the time that simulate() finds.
std::vector<MemoryTrace> simulate_memory(const TaskGraph& graph, Setting setting);

// Returns the spans of all tasks that take time or compute; `actions[t]` is the action of task t.
Timeline make_timeline(const TaskGraph& graph, const Simulation& simulation,
                       std::span<const Action> actions, int devices);

}  // namespace frazil
