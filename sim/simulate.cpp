#include "sim/simulate.h"

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <string>

#include "profiles/error.h"
#include "sim/cost_model.h"
#include "sim/static_engine.h"

namespace frazil {
namespace {

Duration makespan_of(const std::vector<TimePoint>& start, const std::vector<TimePoint>& end) {
  if (start.empty()) {
    return Duration{0};
  }
  return *std::max_element(end.begin(), end.end()) - *std::min_element(start.begin(), start.end());
}

// Throws if the sum of all times, an upper bound on any time of the simulation, exceeds 2^62 ns.
void refuse_overflow(const TaskGraph& graph, const std::vector<Duration>& prices) {
  __extension__ using Wide = __int128;
  constexpr std::int64_t kMost = std::int64_t{1} << 62;
  Wide sum = 0;
  for (const WorkId work : graph.work_of()) sum += prices[work].count();
  for (const Dependency& dependency : graph.dependencies()) {
    if (dependency.delay != kNoWork) sum += prices[dependency.delay].count();
  }
  if (sum > kMost) {
    throw InfeasibleError("the times of this step add up past 2^62 ns, which is 146 years");
  }
}

}  // namespace

Simulation simulate(const TaskGraph& graph, Setting setting, std::span<const Action> actions) {
  ENSURE(actions.empty() || actions.size() == graph.size(), "an action for every task");
  std::function<std::string(TaskId)> name_of;
  if (!actions.empty()) {
    name_of = [&](TaskId task) {
      const DeviceId device = graph.lanes()[graph.lane_of()[task]].device;
      return fmt::format("{} on device {}", to_text(actions[task]), device.value);
    };
  }
  const CompiledGraph compiled = compile(graph, name_of);
  const Prices prices = price_all(graph, setting);
  refuse_overflow(graph, prices.of_work);
  SweepTimes times;
  evaluate(compiled, prices.of_work, times);

  Simulation simulation;
  simulation.extrapolated = prices.extrapolated;
  simulation.start.resize(graph.size());
  simulation.end.resize(graph.size());
  for (std::size_t i = 0; i < graph.size(); ++i) {
    const TimePoint end{Duration{times.end[i]}};
    simulation.end[compiled.task_at[i]] = end;
    simulation.start[compiled.task_at[i]] = end - prices.of_work[compiled.work[i]];
  }
  simulation.makespan = makespan_of(simulation.start, simulation.end);
  simulation.memory = peak_memory(graph, compiled, times, prices.of_work,
                                  static_cast<int>(setting.cluster().devices.size()));
  return simulation;
}

std::vector<MemoryTrace> simulate_memory(const TaskGraph& graph, Setting setting) {
  const CompiledGraph compiled = compile(graph);
  const Prices prices = price_all(graph, setting);
  SweepTimes times;
  evaluate(compiled, prices.of_work, times);
  return trace_memory(graph, compiled, times, prices.of_work,
                      static_cast<int>(setting.cluster().devices.size()));
}

Timeline make_timeline(const TaskGraph& graph, const Simulation& simulation,
                       std::span<const Action> actions, int devices) {
  ENSURE(actions.size() == graph.size() && simulation.end.size() == graph.size(),
         "an action and times for every task");
  Timeline timeline{.devices = devices, .spans = {}};
  timeline.spans.reserve(graph.size());
  for (std::size_t task = 0; task < graph.size(); ++task) {
    const TimePoint start = simulation.start[task];
    const TimePoint end = simulation.end[task];
    if (start == end && !is_compute(actions[task].kind)) {
      continue;
    }
    const TaskLane& lane = graph.lanes()[graph.lane_of()[task]];
    timeline.spans.push_back({lane.device, lane.lane, actions[task], start, end});
  }
  sort_spans(timeline);
  return timeline;
}

}  // namespace frazil
