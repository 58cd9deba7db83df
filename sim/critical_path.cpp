#include "sim/critical_path.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "profiles/error.h"
#include "sim/static_engine.h"

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

std::vector<Duration> find_slacks(const TaskGraph& graph, const Simulation& simulation,
                                  std::span<const Duration> prices) {
  check_sizes(graph, simulation, prices);
  if (graph.size() == 0) return {};
  const CompiledGraph sweep = compile(graph);
  const std::vector<TaskId> before = tasks_before_on_lanes(graph);
  const TimePoint last = *std::max_element(simulation.end.begin(), simulation.end.end());

  // Latest ends are found from the back: whatever waits for a task comes after it in the sweep.
  std::vector<TimePoint> latest(graph.size(), last);
  for (std::size_t i = graph.size(); i-- > 0;) {
    const TaskId task = sweep.task_at[i];
    const TimePoint start = latest[task] - prices[sweep.work[i]];
    for (std::uint32_t k = sweep.first_incoming[i]; k < sweep.first_incoming[i + 1]; ++k) {
      const CompiledGraph::Incoming& incoming = sweep.incoming[k];
      const Duration delay = incoming.delay < sweep.works ? prices[incoming.delay] : Duration{0};
      TimePoint& end = latest[sweep.task_at[incoming.on]];
      end = std::min(end, start - delay);
    }
    if (before[task] != kNoTask) latest[before[task]] = std::min(latest[before[task]], start);
  }

  std::vector<Duration> slacks;
  slacks.reserve(graph.size());
  for (std::size_t task = 0; task < graph.size(); ++task) {
    slacks.push_back(latest[task] - simulation.end[task]);
  }
  return slacks;
}

}  // namespace frazil
