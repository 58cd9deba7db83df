#pragma once
// Explains why a simulated graph takes as long as it does. Every task starts at 0 or exactly when
// something it waited for arrived: the end of the task before it on its lane, or the end of a
// dependency plus its delay (such a link is tight). The critical path is a chain of tight links
// back from the last end, so its tasks and delays add up to the makespan (Kelley and Walker 1959,
// "Critical-path planning and scheduling").
//
// find_critical_path() requires that `simulation` is what simulate() made of `graph` and that
// `prices` are the prices of the graph's works (price_all, of_work). The event engine's times, with
// waits of other kinds, break this requirement.

#include <cstdint>
#include <span>
#include <vector>

#include "sim/simulate.h"
#include "sim/task_graph.h"

namespace frazil {

struct PathStep {
  enum class Reason : std::uint8_t {
    kFirst,       // starts at 0
    kLane,        // the step before is the task before it on its lane
    kDependency,  // the step before is a dependency
  };
  TaskId task = 0;
  Reason reason = Reason::kFirst;
  Duration delay{0};  // start = end of the step before + delay

  friend bool operator==(const PathStep&, const PathStep&) = default;
};

// Finds a critical path from a task that starts at 0 to the task that ends last (if several do, to
// the task of the smallest id). A step that has several tight links names its lane's, else that to
// the smallest task id. Tasks without time (an entry, a barrier) are steps too. Empty without
// tasks.
std::vector<PathStep> find_critical_path(const TaskGraph& graph, const Simulation& simulation,
                                         std::span<const Duration> prices);

}  // namespace frazil
