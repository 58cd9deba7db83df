#include "sim/event_engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "profiles/error.h"
#include "sim/static_engine.h"
#include "tests/sim/event_reference.h"
#include "tests/sim/random_graph.h"
#include "tests/support/sanitizer.h"

namespace frazil {
namespace {

std::vector<TaskTimes> static_times(const TaskGraph& graph, const std::vector<Duration>& prices) {
  const CompiledGraph compiled = compile(graph);
  SweepTimes times;
  evaluate(compiled, prices, times);
  std::vector<TaskTimes> of(graph.size());
  for (std::size_t i = 0; i < of.size(); ++i) {
    of[compiled.task_at[i]] = {times.end[i] - prices[compiled.work[i]].count(), times.end[i]};
  }
  return of;
}

std::string sentence_of(const std::function<void()>& run) {
  try {
    run();
  } catch (const InfeasibleError& error) {
    return error.what();
  }
  return "";
}

TEST(EventEngine, WithoutOptionsEqualsTheStaticEngine) {
  EventTimes reused;
  for (std::uint64_t seed = 0; seed < 10'000; ++seed) {
    const TaskGraph graph = make_random_graph(seed, seed + 1).graph;
    Random random(seed);
    const std::vector<Duration> prices = random_prices(random, graph);
    const std::vector<TaskTimes> expected = static_times(graph, prices);
    ASSERT_EQ(simulate_events(graph, prices).of, expected) << "seed " << seed;
    run_events(prepare_events(graph, {}), prices, reused);
    ASSERT_EQ(reused.of, expected) << "seed " << seed;
    EXPECT_FALSE(reused.rounded);
  }
}

// Sets every option so that none binds.
EventOptions make_ample_options(const TaskGraph& graph) {
  EventOptions options;
  for (WorkId work = 0; work < graph.works().size(); ++work) {
    const ResourceId shared = options.sharing.add_resource(7000);
    options.sharing.draw(work, 7, {{shared}});
  }
  for (TaskId task = 0; task < graph.size(); task += 3) options.meetings.push_back({task});
  options.messages = {.block_sender = true, .buffers = 0};
  options.memory_limits = {Bytes{1}, Bytes{0}};
  options.dispatch.assign(graph.lanes().size(), Dispatch::kInOrder);
  options.priorities.assign(graph.size(), 1);
  return options;
}

TEST(EventEngine, WithOptionsThatDoNotBindEqualsTheStaticEngine) {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    const TaskGraph graph = make_random_graph(seed, seed + 1).graph;
    Random random(seed);
    const std::vector<Duration> prices = random_prices(random, graph);
    const EventTimes times = simulate_events(graph, prices, make_ample_options(graph));
    ASSERT_EQ(times.of, static_times(graph, prices)) << "seed " << seed;
  }
}

// Orders times by line number, so that equal lines can be compared whatever their ids.
std::vector<TaskTimes> times_by_line(const RandomGraph& made, const std::vector<Duration>& prices,
                                     const EventOptions& options) {
  const EventTimes times = simulate_events(made.graph, prices, options);
  std::vector<TaskTimes> by_line;
  for (const TaskId task : made.id_of) by_line.push_back(times.of[task]);
  return by_line;
}

// Lets all works draw on two resources that hold less than the works want.
EventOptions make_scarce_options(Random& random, const TaskGraph& graph) {
  EventOptions options;
  const ResourceId first = options.sharing.add_resource(draw(random, 1, 20));
  const ResourceId second = options.sharing.add_resource(draw(random, 1, 20));
  for (WorkId work = 0; work < graph.works().size(); ++work) {
    const std::vector<ResourceId> resources =
        draw(random, 0, 1) == 0 ? std::vector{first} : std::vector{first, second};
    options.sharing.draw(work, draw(random, 1, 10), resources);
  }
  return options;
}

TEST(EventEngine, TheOrderInWhichLanesAreFilledChangesNoTime) {
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    const RandomGraph one = make_random_graph(seed, 1);
    const RandomGraph other = make_random_graph(seed, 2);
    Random random(seed);
    const std::vector<Duration> prices = random_prices(random, one.graph);
    ASSERT_EQ(times_by_line(one, prices, {}), times_by_line(other, prices, {})) << "seed " << seed;
    const EventOptions scarce = make_scarce_options(random, one.graph);
    ASSERT_EQ(times_by_line(one, prices, scarce), times_by_line(other, prices, scarce))
        << "seed " << seed;
  }
}

TEST(EventEngine, SharingOnlyEverDelays) {
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    const TaskGraph graph = make_random_graph(seed, seed).graph;
    Random random(seed);
    const std::vector<Duration> prices = random_prices(random, graph);
    const EventTimes shared = simulate_events(graph, prices, make_scarce_options(random, graph));
    const std::vector<TaskTimes> alone = static_times(graph, prices);
    for (TaskId task = 0; task < graph.size(); ++task) {
      ASSERT_LE(alone[task].start, shared.of[task].start) << "seed " << seed;
      ASSERT_LE(alone[task].end - alone[task].start, shared.of[task].end - shared.of[task].start);
    }
  }
}

TEST(EventEngine, NamesTheTasksOfACycleAsTheStaticEngineDoes) {
  int cycles = 0;
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    TaskGraph graph = make_random_graph(seed, seed).graph;
    if (graph.size() < 2) continue;
    Random random(seed);
    const int last = static_cast<int>(graph.size()) - 1;
    for (int i = 0; i < 3; ++i) {
      const auto task = static_cast<TaskId>(draw(random, 0, last));
      const auto on = static_cast<TaskId>(draw(random, 0, last));
      if (task != on) graph.add_dependency(task, on);
    }
    const std::vector<Duration> prices = random_prices(random, graph);
    const std::string expected = sentence_of([&] { compile(graph); });
    cycles += expected.empty() ? 0 : 1;
    ASSERT_EQ(sentence_of([&] { simulate_events(graph, prices); }), expected) << "seed " << seed;
  }
  EXPECT_GT(cycles, 500);
}

TEST(EventEngine, UsesTheNamesItIsGiven) {
  TaskGraph graph;
  const LaneId lane = graph.add_lane(DeviceId{0}, Lane::kCompute);
  const WorkId work = graph.add_work(Fixed{});
  graph.add_task(lane, work);
  graph.add_task(lane, work);
  graph.add_dependency(0, 1);
  const auto name_of = [](TaskId task) { return std::string(1, static_cast<char>('a' + task)); };
  const std::vector<Duration> prices = {Duration{1}};
  EXPECT_EQ(sentence_of([&] { simulate_events(graph, prices, {}, name_of); }),
            "deadlock: a waits for b waits for a");
}

TEST(EventEngine, AnEmptyGraphTakesNoTime) {
  TaskGraph graph;
  EXPECT_EQ(latest_end(simulate_events(graph, {})), Duration{0});
  graph.add_lane(DeviceId{0}, Lane::kCompute);
  EXPECT_EQ(latest_end(simulate_events(graph, {})), Duration{0});
}

// A small cluster with everything at once: messages on send lanes, memory, collectives that meet.
struct World {
  TaskGraph graph;
  std::vector<Duration> prices;
  EventOptions options;
};

class WorldBuilder {
 public:
  explicit WorldBuilder(std::uint64_t seed) : random_(seed) {}

  World run() {
    devices_ = draw(random_, 1, 3);
    add_lanes();
    add_works();
    const int tasks = draw(random_, 2, 16);
    for (int i = 0; i < tasks; ++i) add_task();
    if (draw(random_, 0, 1) == 0) limit_memory();
    if (draw(random_, 0, 1) == 0) share();
    if (draw(random_, 0, 2) == 0) choose_dispatch();
    MessageRules& messages = world_.options.messages;
    messages.block_sender = draw(random_, 0, 1) == 0;
    if (draw(random_, 0, 1) == 0) messages.buffers = draw(random_, 0, 2);
    return std::move(world_);
  }

 private:
  void add_lanes() {
    for (int device = 0; device < devices_; ++device) {
      for (const Lane lane : {Lane::kCompute, Lane::kSend, Lane::kCollective}) {
        lanes_.push_back(world_.graph.add_lane(DeviceId{device}, lane));
      }
    }
  }
  void add_works() {
    for (int i = 0; i < 4; ++i) add_work(Fixed{});
    for (int from = 0; from < devices_; ++from) {
      for (int to = 0; to < devices_; ++to) {
        if (from == to) continue;
        add_work(Transfer{DeviceId{from}, DeviceId{to}, Bytes{1}});
        messages_.push_back(static_cast<WorkId>(world_.prices.size() - 1));
      }
    }
  }
  void add_work(const Work& work) {
    world_.graph.add_work(work);
    world_.prices.emplace_back(draw(random_, 0, 6));
  }

  // A new task depends on up to two of the tasks so far, so there is an order in which all could
  // run.
  void add_task() {
    TaskGraph& graph = world_.graph;
    const auto before = static_cast<int>(graph.size());
    const int kind = draw(random_, 0, 9);
    if (kind == 0 && devices_ > 1) {
      add_meeting();
    } else if (kind < 5 && devices_ > 1) {
      const WorkId work = messages_[static_cast<std::size_t>(
          draw(random_, 0, static_cast<int>(messages_.size()) - 1))];
      const std::size_t from = std::get<Transfer>(graph.works()[work]).from.index();
      const auto anywhere = static_cast<std::size_t>(draw(random_, 0, devices_ - 1));
      graph.add_task(kind == 1 ? lanes_[3 * from] : lanes_[3 * (kind == 2 ? anywhere : from) + 1],
                     work);
    } else {
      const auto device = static_cast<std::size_t>(draw(random_, 0, devices_ - 1));
      graph.add_task(lanes_[3 * device], static_cast<WorkId>(draw(random_, 0, 3)));
    }
    for (auto task = static_cast<TaskId>(before); task < graph.size(); ++task) {
      const int arrows = before == 0 ? 0 : draw(random_, 0, 2);
      for (int i = 0; i < arrows; ++i) {
        const auto on = static_cast<TaskId>(draw(random_, 0, before - 1));
        graph.add_dependency(task, on, draw(random_, 0, 2) == 0 ? WorkId{1} : kNoWork);
      }
    }
  }
  void add_meeting() {
    const auto work = static_cast<WorkId>(draw(random_, 0, 3));
    Meeting meeting;
    for (int device = 0; device < devices_; ++device) {
      meeting.push_back(
          world_.graph.add_task(lanes_[3 * static_cast<std::size_t>(device) + 2], work));
    }
    world_.options.meetings.push_back(meeting);
  }

  // One task takes memory, which that task or a later one gives back.
  void limit_memory() {
    const int last = static_cast<int>(world_.graph.size()) - 1;
    for (int i = draw(random_, 1, 6); i > 0; --i) {
      const int taker = draw(random_, 0, last);
      const int giver = draw(random_, taker, last);
      const DeviceId device{draw(random_, 0, devices_ - 1)};
      const std::int64_t size = draw(random_, 1, 4);
      using When = MemoryChange::When;
      const When taken = draw(random_, 0, 3) == 0 ? When::kEnd : When::kStart;
      const When given = draw(random_, 0, 3) == 0 ? When::kStart : When::kEnd;
      world_.graph.change_memory(
          {static_cast<TaskId>(taker), taken, device, MemoryKind::kStash, size});
      world_.graph.change_memory(
          {static_cast<TaskId>(giver), given, device, MemoryKind::kStash, -size});
    }
    for (int device = 0; device < devices_; ++device) {
      world_.graph.hold(DeviceId{device}, MemoryKind::kParameters, Bytes{1});
      world_.options.memory_limits.push_back(Bytes{draw(random_, 4, 9)});
    }
  }

  void share() {
    Sharing& sharing = world_.options.sharing;
    const int resources = draw(random_, 1, 3);
    for (int i = 0; i < resources; ++i) sharing.add_resource(draw(random_, 1, 6));
    for (WorkId work = 0; work < world_.prices.size(); ++work) {
      std::vector<ResourceId> drawn_on;
      for (int i = 0; i < resources; ++i) {
        if (draw(random_, 0, 1) == 0) drawn_on.push_back(static_cast<ResourceId>(i));
      }
      sharing.draw(work, draw(random_, 1, 4), drawn_on);
    }
  }

  void choose_dispatch() {
    for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
      world_.options.dispatch.push_back(static_cast<Dispatch>(draw(random_, 0, 2)));
    }
    for (std::size_t task = 0; task < world_.graph.size(); ++task) {
      world_.options.priorities.push_back(draw(random_, -1, 1));
    }
  }

  Random random_;
  World world_;
  int devices_ = 1;
  std::vector<LaneId> lanes_;  // compute, send, collective of each device
  std::vector<WorkId> messages_;
};

TEST(EventEngine, AgreesWithSteppingThroughTime) {
  int ended = 0;
  int stuck = 0;
  for (int seed = 0; seed < draws(4000); ++seed) {
    const World world = WorldBuilder(static_cast<std::uint64_t>(seed)).run();
    const auto expected = step_through_time(world.graph, world.prices, world.options);
    EventTimes times;
    const std::string sentence =
        sentence_of([&] { times = simulate_events(world.graph, world.prices, world.options); });
    ASSERT_EQ(sentence.empty(), expected.has_value()) << "seed " << seed << ": " << sentence;
    ++(expected ? ended : stuck);
    if (!expected) continue;
    ASSERT_EQ(times.of, *expected) << "seed " << seed;
  }
  EXPECT_GT(ended, draws(2000));
  EXPECT_GT(stuck, draws(200));
}

TEST(EventEngine, RefusesWhatDoesNotExist) {
  TaskGraph graph;
  const LaneId lane = graph.add_lane(DeviceId{0}, Lane::kCompute);
  const WorkId work = graph.add_work(Fixed{});
  graph.add_task(lane, work);
  graph.add_task(lane, work);
  EXPECT_NO_THROW(prepare_events(graph, {}));
  const std::vector<Dependency> wrong = {
      {1, 1, kNoWork}, {1, 2, kNoWork}, {2, 0, kNoWork}, {1, 0, 1}};
  for (const Dependency& dependency : wrong) {
    TaskGraph broken = graph;
    broken.add_dependency(dependency.task, dependency.on, dependency.delay);
    EXPECT_THROW(prepare_events(broken, {}), std::logic_error);
  }
  EventOptions options;
  options.meetings = {{0, 1}, {1}};
  EXPECT_THROW(prepare_events(graph, options), std::logic_error);
  EXPECT_THROW(simulate_events(graph, {}), std::logic_error);
  EXPECT_THROW(simulate_events(graph, std::vector{Duration{-1}}), std::logic_error);
}

}  // namespace
}  // namespace frazil
