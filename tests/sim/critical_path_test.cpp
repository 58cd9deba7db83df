#include "sim/critical_path.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "sim/static_engine.h"
#include "tests/sim/random_graph.h"

namespace frazil {
namespace {

using Reason = PathStep::Reason;

Simulation simulate_at(const TaskGraph& graph, const std::vector<Duration>& prices) {
  const CompiledGraph compiled = compile(graph);
  SweepTimes times;
  evaluate(compiled, prices, times);
  Simulation simulation;
  simulation.makespan = latest_end(times);
  simulation.start.resize(graph.size());
  simulation.end.resize(graph.size());
  for (std::size_t i = 0; i < graph.size(); ++i) {
    simulation.end[compiled.task_at[i]] = TimePoint{Duration{times.end[i]}};
    simulation.start[compiled.task_at[i]] =
        TimePoint{Duration{times.end[i]} - prices[compiled.work[i]]};
  }
  return simulation;
}

// Makes a graph with so many lanes and fixed works.
TaskGraph make_graph(int lanes, std::size_t works) {
  TaskGraph graph;
  for (int lane = 0; lane < lanes; ++lane) graph.add_lane(DeviceId{lane}, Lane::kCompute);
  for (std::size_t work = 0; work < works; ++work) graph.add_work(Fixed{});
  return graph;
}

// Two stages, two micro-batches, F 2, B 3, hop 1, 1F1B:
//   d0 |0011     aaa  bbb|   tasks 0 1 2 3
//   d1 |   00aaa11bbb    |   tasks 4 5 6 7
struct Pipeline {
  TaskGraph graph = make_graph(2, 3);
  std::vector<Duration> prices = {Duration{2}, Duration{3}, Duration{1}};

  Pipeline() {
    for (const WorkId work : {0U, 0U, 1U, 1U}) graph.add_task(0, work);
    for (const WorkId work : {0U, 1U, 0U, 1U}) graph.add_task(1, work);
    constexpr WorkId kHop = 2;
    graph.add_dependency(4, 0, kHop);
    graph.add_dependency(6, 1, kHop);
    graph.add_dependency(2, 5, kHop);
    graph.add_dependency(3, 7, kHop);
  }
};

TEST(CriticalPath, TellsWhyEachStepOfAPipelineStartedWhenItDid) {
  const Pipeline pipeline;
  const Simulation simulation = simulate_at(pipeline.graph, pipeline.prices);
  ASSERT_EQ(simulation.makespan, Duration{17});
  // The path is F0 on d0, hop, F0 B0 F1 B1 on d1, hop, B1 on d0: 2 + 1 + 2 + 3 + 2 + 3 + 1 + 3.
  EXPECT_EQ(find_critical_path(pipeline.graph, simulation, pipeline.prices),
            (std::vector<PathStep>{{0, Reason::kFirst, Duration{0}},
                                   {4, Reason::kDependency, Duration{1}},
                                   {5, Reason::kLane, Duration{0}},
                                   {6, Reason::kLane, Duration{0}},
                                   {7, Reason::kLane, Duration{0}},
                                   {3, Reason::kDependency, Duration{1}}}));
}

// Task 3 is bound by its lane (2), and as tightly by tasks 0 and 1 of other lanes.
TEST(CriticalPath, PrefersTheLaneThenTheSmallestTask) {
  const std::vector<Duration> prices = {Duration{5}};
  const auto path_when = [&](LaneId lane, TaskId first, TaskId second) {
    TaskGraph graph = make_graph(4, 1);
    for (const LaneId of : {LaneId{0}, LaneId{1}, LaneId{2}, lane}) graph.add_task(of, 0);
    graph.add_dependency(3, first);
    graph.add_dependency(3, second);
    return find_critical_path(graph, simulate_at(graph, prices), prices);
  };
  const std::vector<PathStep> by_lane = {{2, Reason::kFirst, Duration{0}},
                                         {3, Reason::kLane, Duration{0}}};
  const std::vector<PathStep> by_dependency = {{0, Reason::kFirst, Duration{0}},
                                               {3, Reason::kDependency, Duration{0}}};
  EXPECT_EQ(path_when(2, 0, 1), by_lane);
  EXPECT_EQ(path_when(3, 0, 1), by_dependency);
  EXPECT_EQ(path_when(3, 1, 0), by_dependency);
}

TEST(CriticalPath, EndsWithTheSmallestOfTheTasksThatEndLast) {
  TaskGraph graph = make_graph(2, 1);
  graph.add_task(1, 0);
  graph.add_task(0, 0);
  const std::vector<Duration> prices = {Duration{4}};
  EXPECT_EQ(find_critical_path(graph, simulate_at(graph, prices), prices),
            (std::vector<PathStep>{{0, Reason::kFirst, Duration{0}}}));
}

TEST(CriticalPath, IsEmptyWithoutTasks) {
  const TaskGraph graph = make_graph(1, 1);
  EXPECT_TRUE(find_critical_path(graph, {}, std::vector<Duration>(1)).empty());
}

TEST(CriticalPath, RefusesTimesThatAreNotThoseOfTheGraph) {
  const Pipeline pipeline;
  Simulation late = simulate_at(pipeline.graph, pipeline.prices);
  late.start[3] += Duration{1};
  late.end[3] += Duration{1};
  EXPECT_THROW(find_critical_path(pipeline.graph, late, pipeline.prices), std::logic_error);
  Simulation early = simulate_at(pipeline.graph, pipeline.prices);
  early.start[6] = TimePoint{};
  EXPECT_THROW(find_critical_path(pipeline.graph, early, pipeline.prices), std::logic_error);
  EXPECT_THROW(find_critical_path(pipeline.graph, {}, pipeline.prices), std::logic_error);
}

// Returns the delays of the dependencies of `to` on `from`.
std::vector<Duration> links(const TaskGraph& graph, const std::vector<Duration>& prices,
                            TaskId from, TaskId to) {
  std::vector<Duration> delays;
  for (const Dependency& dependency : graph.dependencies()) {
    if (dependency.on != from || dependency.task != to) continue;
    delays.push_back(dependency.delay == kNoWork ? Duration{0} : prices[dependency.delay]);
  }
  return delays;
}

bool follows_on_lane(const TaskGraph& graph, TaskId before, TaskId task) {
  if (before >= task || graph.lane_of()[before] != graph.lane_of()[task]) return false;
  for (TaskId between = before + 1; between < task; ++between) {
    if (graph.lane_of()[between] == graph.lane_of()[task]) return false;
  }
  return true;
}

void expect_tight(const TaskGraph& graph, const Simulation& simulation,
                  const std::vector<Duration>& prices, const PathStep& before,
                  const PathStep& step) {
  EXPECT_EQ(simulation.start[step.task], simulation.end[before.task] + step.delay);
  if (step.reason == Reason::kLane) {
    EXPECT_TRUE(follows_on_lane(graph, before.task, step.task));
    EXPECT_EQ(step.delay, Duration{0});
  } else {
    EXPECT_EQ(step.reason, Reason::kDependency);
    const std::vector<Duration> delays = links(graph, prices, before.task, step.task);
    EXPECT_NE(std::find(delays.begin(), delays.end(), step.delay), delays.end());
  }
}

TEST(CriticalPath, AddsUpToTheMakespanByTightLinksOfRandomGraphs) {
  std::size_t lane_links = 0;
  std::size_t delayed_links = 0;
  for (std::uint64_t seed = 0; seed < 5000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const TaskGraph graph = make_random_graph(seed, seed + 1).graph;
    Random random(seed);
    const std::vector<Duration> prices = random_prices(random, graph);
    const Simulation simulation = simulate_at(graph, prices);
    const std::vector<PathStep> path = find_critical_path(graph, simulation, prices);
    ASSERT_FALSE(path.empty());
    EXPECT_EQ(path.front().reason, Reason::kFirst);
    EXPECT_EQ(simulation.start[path.front().task], TimePoint{});
    EXPECT_EQ(simulation.end[path.back().task], TimePoint{simulation.makespan});
    Duration sum{0};
    for (std::size_t i = 0; i < path.size(); ++i) {
      sum += path[i].delay + prices[graph.work_of()[path[i].task]];
      if (i > 0) expect_tight(graph, simulation, prices, path[i - 1], path[i]);
      lane_links += path[i].reason == Reason::kLane ? 1 : 0;
      delayed_links += path[i].delay > Duration{0} ? 1 : 0;
    }
    EXPECT_EQ(sum, simulation.makespan);
  }
  EXPECT_GT(lane_links, 5000U);
  EXPECT_GT(delayed_links, 5000U);
}

// Returns the makespan if `task` may not start before `start`, because it waits for one more task,
// alone on a lane of its own.
Duration makespan_when_held(TaskGraph graph, std::vector<Duration> prices, TaskId task,
                            TimePoint start) {
  const LaneId lane = graph.add_lane(DeviceId{0}, Lane::kHost);
  const WorkId work = graph.add_work(Fixed{});
  prices.push_back(start.time_since_epoch());
  graph.add_dependency(task, graph.add_task(lane, work));
  return simulate_at(graph, prices).makespan;
}

TEST(CriticalPath, HasNoTaskThatMayBeHeld) {
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const TaskGraph graph = make_random_graph(seed, seed + 1).graph;
    Random random(seed);
    const std::vector<Duration> prices = random_prices(random, graph);
    const Simulation simulation = simulate_at(graph, prices);
    for (const PathStep& step : find_critical_path(graph, simulation, prices)) {
      const TimePoint later = simulation.start[step.task] + Duration{1};
      EXPECT_EQ(makespan_when_held(graph, prices, step.task, later),
                simulation.makespan + Duration{1})
          << "task " << step.task;
    }
  }
}

}  // namespace
}  // namespace frazil
