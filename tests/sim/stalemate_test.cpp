#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "profiles/error.h"
#include "sim/static_engine.h"
#include "tests/sim/random_graph.h"

namespace frazil {
namespace {

// Returns the sentence with which a graph is refused, or "" if it is not.
std::string deadlock_of(const TaskGraph& graph,
                        const std::function<std::string(TaskId)>& name_of = {}) {
  try {
    compile(graph, name_of);
  } catch (const InfeasibleError& error) {
    return error.what();
  }
  return "";
}

bool waits_for(const TaskGraph& graph, TaskId task, TaskId on) {
  if (graph.lane_of()[on] == graph.lane_of()[task] && on < task) {
    return true;
  }
  const std::vector<Dependency>& all = graph.dependencies();
  return std::any_of(all.begin(), all.end(), [&](const Dependency& dependency) {
    return dependency.task == task && dependency.on == on;
  });
}

// True if each task waits for the next and the last for the first.
bool is_closed(const TaskGraph& graph, const std::vector<TaskId>& cycle) {
  for (std::size_t i = 0; i < cycle.size(); ++i) {
    if (!waits_for(graph, cycle[i], cycle[(i + 1) % cycle.size()])) {
      return false;
    }
  }
  return true;
}

// Makes `tasks` tasks on each of `devices` lanes, lane after lane.
TaskGraph make_lanes(int devices, int tasks) {
  TaskGraph graph;
  const WorkId work = graph.add_work(Fixed{});
  for (int device = 0; device < devices; ++device) {
    const LaneId lane = graph.add_lane(DeviceId{device}, Lane::kCompute);
    for (int i = 0; i < tasks; ++i) {
      graph.add_task(lane, work);
    }
  }
  return graph;
}

// Makes two devices of which each waits for the other's last task.
TaskGraph make_deadlock() {
  TaskGraph graph = make_lanes(2, 3);
  graph.add_dependency(1, 5);
  graph.add_dependency(4, 2);
  return graph;
}

TEST(Deadlock, NamesTheTasksOfItsCycle) {
  EXPECT_EQ(find_cycle(make_deadlock()), (std::vector<TaskId>{1, 5, 4, 2}));
  EXPECT_EQ(deadlock_of(make_deadlock()),
            "deadlock: task 1 on device 0 waits for task 5 on device 1 waits for task 4 on device "
            "1 waits for task 2 on device 0 waits for task 1 on device 0");
}

TEST(Deadlock, UsesTheNamesItIsGiven) {
  const std::string names = "abcdef";
  EXPECT_EQ(deadlock_of(make_deadlock(), [&](TaskId task) { return names.substr(task, 1); }),
            "deadlock: b waits for f waits for e waits for c waits for b");
}

TEST(Deadlock, NamesSixTasksOfALongCycle) {
  TaskGraph graph = make_lanes(9, 1);
  for (TaskId task = 0; task < 9; ++task) {
    graph.add_dependency(task, (task + 1) % 9);
  }
  EXPECT_EQ(deadlock_of(graph, [](TaskId task) { return std::to_string(task); }),
            "deadlock: 0 waits for 1 waits for 2 waits for 3 waits for 4 waits for 5 waits for 3 "
            "more waits for 0");
}

TEST(Deadlock, ArisesWhenATaskWaitsForALaterOneOfItsLane) {
  TaskGraph graph = make_lanes(1, 3);
  graph.add_dependency(0, 2);
  EXPECT_EQ(find_cycle(graph), (std::vector<TaskId>{0, 2}));
  EXPECT_EQ(deadlock_of(graph),
            "deadlock: task 0 on device 0 waits for task 2 on device 0 waits for task 0 on device "
            "0");
}

TEST(Deadlock, LeavesOutTasksThatOnlyWaitForTheCycle) {
  TaskGraph graph = make_lanes(4, 1);
  graph.add_dependency(0, 1);
  graph.add_dependency(1, 2);
  graph.add_dependency(2, 3);
  graph.add_dependency(3, 2);
  EXPECT_EQ(find_cycle(graph), (std::vector<TaskId>{2, 3}));
}

// Draws a graph with one more dependency, on a task of a higher id.
TaskGraph make_graph_that_may_hang(std::uint64_t seed) {
  TaskGraph graph = make_random_graph(seed, seed).graph;
  if (graph.size() < 2) {
    return graph;
  }
  Random random(seed);
  const int last = static_cast<int>(graph.size()) - 1;
  const int task = draw(random, 0, last - 1);
  graph.add_dependency(static_cast<TaskId>(task),
                       static_cast<TaskId>(draw(random, task + 1, last)));
  return graph;
}

TEST(Deadlock, EveryStepOfItsCycleIsADependencyOrTheOrderOfALane) {
  int cycles = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    const TaskGraph graph = make_graph_that_may_hang(seed);
    const std::vector<TaskId> cycle = find_cycle(graph);
    EXPECT_EQ(cycle.empty(), deadlock_of(graph).empty());
    cycles += cycle.empty() ? 0 : 1;
    EXPECT_TRUE(is_closed(graph, cycle));
  }
  EXPECT_GT(cycles, 50);
}

}  // namespace
}  // namespace frazil
