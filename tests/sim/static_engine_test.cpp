#include "sim/static_engine.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <utility>
#include <vector>

#include "tests/sim/random_graph.h"

namespace frazil {
namespace {

// Returns ends by task id.
std::vector<std::int64_t> ends_of(const TaskGraph& graph, const std::vector<Duration>& prices) {
  const CompiledGraph compiled = compile(graph);
  SweepTimes times;
  evaluate(compiled, prices, times);
  std::vector<std::int64_t> ends(graph.size());
  for (std::size_t i = 0; i < ends.size(); ++i) {
    ends[compiled.task_at[i]] = times.end[i];
  }
  return ends;
}

Duration makespan_of(const TaskGraph& graph, const std::vector<Duration>& prices) {
  SweepTimes times;
  evaluate(compile(graph), prices, times);
  return latest_end(times);
}

// Makes a pipeline of equal stages with one lane each. orders[s] lists what stage s does: m for the
// forward of micro-batch m, -1 - m for its backward. Work 0 is a forward, 1 a backward, 2 a hop.
TaskGraph make_pipeline(const std::vector<std::vector<int>>& orders) {
  TaskGraph graph;
  graph.add_work(Fixed{});
  graph.add_work(Fixed{});
  graph.add_work(Fixed{});
  const std::size_t stages = orders.size();
  std::vector<std::vector<TaskId>> forward(stages);
  std::vector<std::vector<TaskId>> backward(stages);
  for (std::size_t stage = 0; stage < stages; ++stage) {
    const LaneId lane = graph.add_lane(DeviceId{stage}, Lane::kCompute);
    forward[stage].resize(orders[stage].size() / 2);
    backward[stage].resize(orders[stage].size() / 2);
    for (const int entry : orders[stage]) {
      const bool is_forward = entry >= 0;
      const auto micro_batch = static_cast<std::size_t>(is_forward ? entry : -1 - entry);
      (is_forward ? forward : backward)[stage][micro_batch] =
          graph.add_task(lane, is_forward ? 0 : 1);
    }
  }
  for (std::size_t stage = 0; stage < stages; ++stage) {
    for (std::size_t micro_batch = 0; micro_batch < forward[stage].size(); ++micro_batch) {
      graph.add_dependency(backward[stage][micro_batch], forward[stage][micro_batch]);
      if (stage + 1 == stages) {
        continue;
      }
      graph.add_dependency(forward[stage + 1][micro_batch], forward[stage][micro_batch], 2);
      graph.add_dependency(backward[stage][micro_batch], backward[stage + 1][micro_batch], 2);
    }
  }
  return graph;
}

std::vector<int> gpipe_order(int micro_batches) {
  std::vector<int> order(static_cast<std::size_t>(micro_batches));
  std::iota(order.begin(), order.end(), 0);
  for (int micro_batch = 0; micro_batch < micro_batches; ++micro_batch) {
    order.push_back(-1 - micro_batch);
  }
  return order;
}

std::vector<int> one_forward_one_backward_order(int stages, int stage, int micro_batches) {
  const int warm_up = std::min(stages - stage, micro_batches);
  std::vector<int> order(static_cast<std::size_t>(warm_up));
  std::iota(order.begin(), order.end(), 0);
  for (int micro_batch = 0; micro_batch < micro_batches; ++micro_batch) {
    order.push_back(-1 - micro_batch);
    if (warm_up + micro_batch < micro_batches) {
      order.push_back(warm_up + micro_batch);
    }
  }
  return order;
}

// Applies the definition until nothing changes, without any order of tasks but that of the lanes.
std::vector<std::int64_t> relax(const TaskGraph& graph, const std::vector<Duration>& prices) {
  std::vector<std::pair<TaskId, std::pair<TaskId, std::int64_t>>> arrows;
  for (TaskId task = 0; task < graph.size(); ++task) {
    for (TaskId earlier = 0; earlier < task; ++earlier) {
      if (graph.lane_of()[earlier] == graph.lane_of()[task]) {
        arrows.push_back({task, {earlier, 0}});
      }
    }
  }
  for (const Dependency& dependency : graph.dependencies()) {
    const bool delayed = dependency.delay != kNoWork;
    arrows.push_back(
        {dependency.task, {dependency.on, delayed ? prices[dependency.delay].count() : 0}});
  }
  std::vector<std::int64_t> start(graph.size(), 0);
  const auto end = [&](TaskId task) { return start[task] + prices[graph.work_of()[task]].count(); };
  for (bool changed = true; changed;) {
    changed = false;
    for (const auto& [task, from] : arrows) {
      const std::int64_t earliest = end(from.first) + from.second;
      if (start[task] >= earliest) {
        continue;
      }
      start[task] = earliest;
      changed = true;
    }
  }
  std::vector<std::int64_t> ends;
  for (TaskId task = 0; task < graph.size(); ++task) {
    ends.push_back(end(task));
  }
  return ends;
}

TEST(StaticEngine, GPipeTakesItsClosedForm) {
  Random random(1);
  for (int i = 0; i < 60; ++i) {
    const int stages = draw(random, 1, 9);
    const int micro_batches = draw(random, 1, 20);
    const Duration forward{draw(random, 1, 1000)};
    const Duration backward{draw(random, 1, 1000)};
    SCOPED_TRACE(fmt::format("p={} m={}", stages, micro_batches));
    const std::vector<std::vector<int>> orders(static_cast<std::size_t>(stages),
                                               gpipe_order(micro_batches));
    EXPECT_EQ(makespan_of(make_pipeline(orders), {forward, backward, Duration{0}}),
              (micro_batches + stages - 1) * (forward + backward));
  }
}

TEST(StaticEngine, OneForwardOneBackwardTakesItsClosedForm) {
  Random random(2);
  for (int i = 0; i < 60; ++i) {
    const int stages = draw(random, 1, 9);
    const int micro_batches = draw(random, 1, 20);
    const Duration forward{draw(random, 1, 1000)};
    const Duration backward{draw(random, 1, 1000)};
    SCOPED_TRACE(fmt::format("p={} m={}", stages, micro_batches));
    std::vector<std::vector<int>> orders;
    orders.reserve(static_cast<std::size_t>(stages));
    for (int stage = 0; stage < stages; ++stage) {
      orders.push_back(one_forward_one_backward_order(stages, stage, micro_batches));
    }
    EXPECT_EQ(makespan_of(make_pipeline(orders), {forward, backward, Duration{0}}),
              (micro_batches + stages - 1) * (forward + backward));
  }
}

TEST(StaticEngine, AHopDelaysOnlyTheDependentTask) {
  // Two stages run one micro-batch: F, hop, F, B, hop, B.
  const TaskGraph graph = make_pipeline({{0, -1}, {0, -1}});
  EXPECT_EQ(ends_of(graph, {Duration{10}, Duration{20}, Duration{3}}),
            (std::vector<std::int64_t>{10, 66, 23, 43}));
}

TEST(StaticEngine, AgreesWithRepeatedRelaxationOnRandomGraphs) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(seed);
    const TaskGraph graph = make_random_graph(seed, seed + 1).graph;
    Random random(seed);
    const std::vector<Duration> prices = random_prices(random, graph);
    ASSERT_EQ(ends_of(graph, prices), relax(graph, prices));
    EXPECT_TRUE(find_cycle(graph).empty());
  }
}

bool points_backward(const CompiledGraph& compiled) {
  for (std::uint32_t i = 0; i < compiled.task_at.size(); ++i) {
    for (std::uint32_t k = compiled.first_incoming[i]; k < compiled.first_incoming[i + 1]; ++k) {
      if (compiled.incoming[k].on >= i) {
        return false;
      }
    }
  }
  return true;
}

TEST(StaticEngine, SweepsEveryTaskOnceAfterAllItWaitsFor) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(seed);
    const TaskGraph graph = make_random_graph(seed, seed).graph;
    const CompiledGraph compiled = compile(graph);
    std::vector<TaskId> all(graph.size());
    std::iota(all.begin(), all.end(), TaskId{0});
    std::vector<TaskId> swept = compiled.task_at;
    std::sort(swept.begin(), swept.end());
    ASSERT_EQ(swept, all);
    ASSERT_EQ(compiled.first_incoming.back(), graph.dependencies().size());
    EXPECT_TRUE(points_backward(compiled));
  }
}

TEST(StaticEngine, EvaluatesOtherPricesAsAFreshGraphWould) {
  SweepTimes reused;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(seed);
    const TaskGraph graph = make_random_graph(seed, seed).graph;
    const CompiledGraph compiled = compile(graph);
    Random random(seed);
    for (int round = 0; round < 3; ++round) {
      const std::vector<Duration> prices = random_prices(random, graph);
      evaluate(compiled, prices, reused);
      SweepTimes fresh;
      evaluate(compile(make_random_graph(seed, seed).graph), prices, fresh);
      ASSERT_EQ(reused.end, fresh.end);
      ASSERT_EQ(latest_end(reused), latest_end(fresh));
    }
  }
}

// Orders ends by line number, so that equal lines can be compared whatever their ids.
std::vector<std::int64_t> ends_by_line(const RandomGraph& made,
                                       const std::vector<Duration>& prices) {
  const std::vector<std::int64_t> ends = ends_of(made.graph, prices);
  std::vector<std::int64_t> by_line;
  by_line.reserve(ends.size());
  for (const TaskId task : made.id_of) {
    by_line.push_back(ends[task]);
  }
  return by_line;
}

TEST(StaticEngine, TheOrderInWhichLanesAreFilledChangesNoTime) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(seed);
    const RandomGraph one = make_random_graph(seed, 1);
    const RandomGraph other = make_random_graph(seed, 2);
    Random random(seed);
    const std::vector<Duration> prices = random_prices(random, one.graph);
    ASSERT_EQ(ends_by_line(one, prices), ends_by_line(other, prices));
  }
}

TEST(StaticEngine, TheLatestEndIsThatOfTheLastTask) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(seed);
    const TaskGraph graph = make_random_graph(seed, seed).graph;
    Random random(seed);
    const std::vector<Duration> prices = random_prices(random, graph);
    const std::vector<std::int64_t> ends = relax(graph, prices);
    EXPECT_EQ(makespan_of(graph, prices).count(), *std::max_element(ends.begin(), ends.end()));
  }
}

TEST(StaticEngine, AnEmptyGraphTakesNoTime) {
  TaskGraph graph;
  EXPECT_EQ(makespan_of(graph, {}), Duration{0});
  graph.add_lane(DeviceId{0}, Lane::kCompute);
  EXPECT_EQ(makespan_of(graph, {}), Duration{0});
  EXPECT_TRUE(find_cycle(graph).empty());
}

bool breaks_an_invariant(const TaskGraph& graph) {
  try {
    compile(graph);
  } catch (const std::logic_error&) {
    return true;
  }
  return false;
}

// Makes a lane, a work and two tasks.
TaskGraph make_pair_of_tasks() {
  TaskGraph graph;
  const LaneId lane = graph.add_lane(DeviceId{0}, Lane::kCompute);
  const WorkId work = graph.add_work(Fixed{});
  graph.add_task(lane, work);
  graph.add_task(lane, work);
  return graph;
}

TEST(StaticEngine, RefusesDependenciesOnWhatDoesNotExist) {
  EXPECT_FALSE(breaks_an_invariant(make_pair_of_tasks()));
  const std::vector<Dependency> wrong = {
      {1, 1, kNoWork}, {1, 2, kNoWork}, {2, 0, kNoWork}, {1, 0, 1}};
  for (const Dependency& dependency : wrong) {
    TaskGraph graph = make_pair_of_tasks();
    graph.add_dependency(dependency.task, dependency.on, dependency.delay);
    EXPECT_TRUE(breaks_an_invariant(graph)) << dependency.task << " on " << dependency.on;
  }
}

TEST(StaticEngine, RefusesTasksOfUnknownLanesAndWorks) {
  TaskGraph lane = make_pair_of_tasks();
  lane.add_task(1, 0);
  EXPECT_TRUE(breaks_an_invariant(lane));
  TaskGraph work = make_pair_of_tasks();
  work.add_task(0, 1);
  EXPECT_TRUE(breaks_an_invariant(work));
}

TEST(StaticEngine, RefusesToEvaluateWithoutAPriceForEveryWork) {
  SweepTimes times;
  EXPECT_THROW(evaluate(compile(make_pair_of_tasks()), {}, times), std::logic_error);
}

}  // namespace
}  // namespace frazil
