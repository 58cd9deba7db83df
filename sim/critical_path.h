#pragma once
// Why a simulated graph takes as long as it does. Every task starts at 0 or exactly when something
// it waited for arrived: the end of the task before it on its lane, or the end of a dependency plus
// its delay (such a link is tight). The critical path is a chain of tight links back from the last
// end, so the tasks and delays on it add up to the makespan; slack says how far the others are from
// it (Kelley and Walker 1959, "Critical-path planning and scheduling").
//
// `simulation` is what simulate() made of `graph`, and `prices` are its works' (price_all,
// of_work): another engine's times, with waits of another kind, break the requirement.

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
  Duration delay{0};  // of the dependency: start = end of the step before + delay

  friend bool operator==(const PathStep&, const PathStep&) = default;
};

// From a task that starts at 0 to the one that ends last, of several the one of the smallest id. Of
// several tight links a step names its lane's, else that of the smallest task id. Tasks without
// time (an entry, a barrier) are steps too. Empty without tasks.
std::vector<PathStep> find_critical_path(const TaskGraph& graph, const Simulation& simulation,
                                         std::span<const Duration> prices);

// By task: how much later than in `simulation` it could start, all others as early as they then
// can, without a later last end. 0 for every task of the critical path.
std::vector<Duration> find_slacks(const TaskGraph& graph, const Simulation& simulation,
                                  std::span<const Duration> prices);

}  // namespace frazil
