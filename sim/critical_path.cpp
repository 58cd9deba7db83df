#include "sim/critical_path.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "profiles/error.h"

namespace frazil {
namespace {

Duration delay_of(const Dependency& dependency, std::span<const Duration> prices) {
  return dependency.delay == kNoWork ? Duration{0} : prices[dependency.delay];
}

void check_sizes(const TaskGraph& graph, const Simulation& simulation,
                 std::span<const Duration> prices) {
  ENSURE(simulation.start.size() == graph.size() && simulation.end.size() == graph.size(),
         "times for every task");
  ENSURE(prices.size() >= graph.works().size(), "a price for every work");
}

// Returns for each task the task before it on its lane; kNoTask for the first task of a lane.
std::vector<TaskId> tasks_before_on_lanes(const TaskGraph& graph) {
  std::vector<TaskId> last(graph.lanes().size(), kNoTask);
  std::vector<TaskId> before(graph.size());
  for (std::size_t task = 0; task < graph.size(); ++task) {
    before[task] = std::exchange(last[graph.lane_of()[task]], static_cast<TaskId>(task));
  }
  return before;
}

// Returns for each task the smallest task that it depends on by a tight link; kNoTask if there is
// none.
std::vector<TaskId> find_tight_dependencies(const TaskGraph& graph, const Simulation& simulation,
                                            std::span<const Duration> prices) {
  std::vector<TaskId> tight(graph.size(), kNoTask);
  for (const Dependency& dependency : graph.dependencies()) {
    const TimePoint arrival = simulation.end[dependency.on] + delay_of(dependency, prices);
    const TimePoint start = simulation.start[dependency.task];
    ENSURE(arrival <= start, "a task starts before what it waits for");
    if (arrival == start) tight[dependency.task] = std::min(tight[dependency.task], dependency.on);
  }
  return tight;
}

}  // namespace

std::vector<PathStep> find_critical_path(const TaskGraph& graph, const Simulation& simulation,
                                         std::span<const Duration> prices) {
  check_sizes(graph, simulation, prices);
  if (graph.size() == 0) return {};
  const std::vector<TimePoint>& start = simulation.start;
  const std::vector<TimePoint>& end = simulation.end;
  const std::vector<TaskId> before = tasks_before_on_lanes(graph);
  const std::vector<TaskId> tight = find_tight_dependencies(graph, simulation, prices);

  std::vector<PathStep> path;
  auto task = static_cast<TaskId>(std::max_element(end.begin(), end.end()) - end.begin());
  while (start[task] > TimePoint{}) {
    const bool waited_for_lane = before[task] != kNoTask && end[before[task]] == start[task];
    const TaskId on = waited_for_lane ? before[task] : tight[task];
    ENSURE(on != kNoTask, "a task starts at a time that nothing gives");
    path.push_back({task, waited_for_lane ? PathStep::Reason::kLane : PathStep::Reason::kDependency,
                    start[task] - end[on]});
    task = on;
  }
  path.push_back({task, PathStep::Reason::kFirst, Duration{0}});
  std::reverse(path.begin(), path.end());
  return path;
}

}  // namespace frazil
