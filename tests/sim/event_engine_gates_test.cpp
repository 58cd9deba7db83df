// Tests what tasks wait for beside their dependencies: messages for buffers and receivers, compute
// lanes for messages, allocations for room, tasks of one lane for each other.

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "profiles/error.h"
#include "sim/event_engine.h"
#include "tests/sim/random_graph.h"

namespace frazil {
namespace {

using Times = std::vector<TaskTimes>;
using When = MemoryChange::When;

struct GateBuilder {
  TaskGraph graph;
  std::vector<Duration> prices;
  EventOptions options;

  LaneId lane(int device, Lane lane = Lane::kCompute) {
    return graph.add_lane(DeviceId{device}, lane);
  }
  WorkId work(std::int64_t price, const Work& work = Fixed{}) {
    prices.emplace_back(price);
    return graph.add_work(work);
  }
  TaskId task(LaneId lane, std::int64_t price, const std::vector<TaskId>& after = {}) {
    return add(lane, work(price), after);
  }
  TaskId send(LaneId lane, int from, int to, std::int64_t price, const std::vector<TaskId>& after) {
    return add(lane, work(price, Transfer{DeviceId{from}, DeviceId{to}, Bytes{1}}), after);
  }
  TaskId add(LaneId lane, WorkId work, const std::vector<TaskId>& after) {
    const TaskId task = graph.add_task(lane, work);
    for (const TaskId on : after) graph.add_dependency(task, on);
    return task;
  }
  void memory(TaskId task, When when, std::int64_t delta, int device = 0) {
    graph.change_memory({task, when, DeviceId{device}, MemoryKind::kStash, delta});
  }
  // Takes `size` at the start of one task and gives it back at the end of another.
  void lend(TaskId from, TaskId to, std::int64_t size) {
    memory(from, When::kStart, size);
    memory(to, When::kEnd, -size);
  }

  Times times() const { return simulate_events(graph, prices, options).of; }
  std::string sentence() const {
    try {
      times();
    } catch (const InfeasibleError& error) {
      return error.what();
    }
    return "";
  }
};

// Device 0 makes three messages, 10 ns each and 5 ns on the way; device 1 needs 30 ns for each.
struct Stream : GateBuilder {
  std::vector<TaskId> made, sent, used;

  Stream() {
    const LaneId maker = lane(0);
    const LaneId link = lane(0, Lane::kSend);
    const LaneId user = lane(1);
    for (int i = 0; i < 3; ++i) {
      made.push_back(task(maker, 10));
      sent.push_back(send(link, 0, 1, 5, {made.back()}));
      used.push_back(task(user, 30, {sent.back()}));
    }
  }
  Times of(const std::vector<TaskId>& tasks) const {
    const Times all = times();
    Times found;
    for (const TaskId task : tasks) found.push_back(all[task]);
    return found;
  }
};

TEST(Messages, LeaveAtOnceWhereBuffersAreUnlimited) {
  const Stream stream;
  EXPECT_EQ(stream.of(stream.made), Times({{0, 10}, {10, 20}, {20, 30}}));
  EXPECT_EQ(stream.of(stream.sent), Times({{10, 15}, {20, 25}, {30, 35}}));
  EXPECT_EQ(stream.of(stream.used), Times({{15, 45}, {45, 75}, {75, 105}}));
}

// The receiver is there for the first message from the beginning, for each other message when it
// has done the one before.
TEST(Messages, WithoutBuffersWaitForTheirReceiver) {
  Stream stream;
  stream.options.messages.buffers = 0;
  EXPECT_EQ(stream.of(stream.made), Times({{0, 10}, {10, 20}, {20, 30}}));
  EXPECT_EQ(stream.of(stream.sent), Times({{10, 15}, {45, 50}, {80, 85}}));
  EXPECT_EQ(stream.of(stream.used), Times({{15, 45}, {50, 80}, {85, 115}}));
}

// The second message takes the buffer; it is taken out at 45, and the third leaves.
TEST(Messages, TakeOneOfTheBuffersOfTheirChannel) {
  Stream stream;
  stream.options.messages.buffers = 1;
  EXPECT_EQ(stream.of(stream.sent), Times({{10, 15}, {20, 25}, {45, 50}}));
  EXPECT_EQ(stream.of(stream.used), Times({{15, 45}, {45, 75}, {75, 105}}));
  stream.options.messages.buffers = 2;
  EXPECT_EQ(stream.of(stream.sent), Times({{10, 15}, {20, 25}, {30, 35}}));
}

TEST(Messages, ThatBlockStopTheComputeLaneOfTheirSender) {
  Stream stream;
  stream.options.messages.block_sender = true;
  EXPECT_EQ(stream.of(stream.made), Times({{0, 10}, {15, 25}, {30, 40}}));
  EXPECT_EQ(stream.of(stream.sent), Times({{10, 15}, {25, 30}, {40, 45}}));
}

TEST(Messages, ThatBlockWithoutBuffersStopTheirSenderUntilTheReceiverIsThere) {
  Stream stream;
  stream.options.messages = {.block_sender = true, .buffers = 0};
  EXPECT_EQ(stream.of(stream.made), Times({{0, 10}, {15, 25}, {50, 60}}));
  EXPECT_EQ(stream.of(stream.sent), Times({{10, 15}, {45, 50}, {80, 85}}));
}

// A message of another lane has its turn at 4, while a task runs; the next task waits for both.
TEST(Messages, ThatBlockWaitForTheTaskThatRuns) {
  GateBuilder builder;
  const LaneId compute = builder.lane(0);
  builder.task(compute, 10);
  builder.task(compute, 10);
  const TaskId host = builder.task(builder.lane(0, Lane::kHost), 4);
  const TaskId message = builder.send(builder.lane(0, Lane::kSend), 0, 1, 3, {host});
  builder.options.messages.block_sender = true;
  const Times times = builder.times();
  EXPECT_EQ(times[message], (TaskTimes{10, 13}));
  EXPECT_EQ(times[1], (TaskTimes{13, 23}));
}

// The pipeline runs forwards only: f per stage, c per message, p stages, m micro-batches. If
// messages overlap, stages and links work side by side and the slower sets the pace; if they block,
// a stage computes and sends in turn.
TEST(Messages, InAPipelineTakeTheirClosedForms) {
  Random random(3);
  for (int i = 0; i < 100; ++i) {
    const int stages = draw(random, 2, 6);
    const int micro_batches = draw(random, 1, 8);
    const int forward = draw(random, 1, 50);
    const int hop = draw(random, 1, 50);
    SCOPED_TRACE(fmt::format("p={} m={} f={} c={}", stages, micro_batches, forward, hop));
    GateBuilder builder;
    std::vector<TaskId> arrived(static_cast<std::size_t>(micro_batches));
    for (int stage = 0; stage < stages; ++stage) {
      const LaneId compute = builder.lane(stage);
      const LaneId link = builder.lane(stage, Lane::kSend);
      for (TaskId& before : arrived) {
        const std::vector<TaskId> after = stage == 0 ? std::vector<TaskId>{} : std::vector{before};
        before = builder.task(compute, forward, after);
        if (stage + 1 < stages) before = builder.send(link, stage, stage + 1, hop, {before});
      }
    }
    const auto makespan = [&] {
      return latest_end(simulate_events(builder.graph, builder.prices, builder.options)).count();
    };
    const int ramp = (stages - 1) * (forward + hop) + forward;
    EXPECT_EQ(makespan(), ramp + (micro_batches - 1) * std::max(forward, hop));
    builder.options.messages.block_sender = true;
    EXPECT_EQ(makespan(), ramp + (micro_batches - 1) * (forward + hop));
  }
}

// Makes two devices that each send before they receive.
GateBuilder make_exchange() {
  GateBuilder builder;
  const LaneId compute[] = {builder.lane(0), builder.lane(1)};
  const LaneId link[] = {builder.lane(0, Lane::kSend), builder.lane(1, Lane::kSend)};
  std::vector<TaskId> messages;
  for (int device = 0; device < 2; ++device) {
    const TaskId made = builder.task(compute[device], 10);
    messages.push_back(builder.send(link[device], device, 1 - device, 5, {made}));
  }
  builder.task(compute[0], 10, {messages[1]});
  builder.task(compute[1], 10, {messages[0]});
  builder.options.messages.block_sender = true;
  return builder;
}

TEST(Messages, ThatBlockBothWaysDeadlockWithoutBuffers) {
  GateBuilder builder = make_exchange();
  EXPECT_EQ(builder.sentence(), "");
  builder.options.messages.buffers = 1;
  EXPECT_EQ(builder.sentence(), "");
  builder.options.messages.buffers = 0;
  EXPECT_EQ(builder.sentence(),
            "deadlock: task 1 on device 0 waits for task 3 on device 1 waits for task 1 on device "
            "0");
  builder.options.messages.block_sender = false;
  EXPECT_EQ(builder.sentence(), "");
}

// Three lanes of device 0 want 6, 4 and 3 of 10 bytes; the first two fit, the third waits for the
// end of the first.
TEST(Allocations, WaitForRoom) {
  GateBuilder builder;
  for (const auto& [size, price] : {std::pair{6, 20}, {4, 30}, {3, 10}}) {
    const TaskId task = builder.task(builder.lane(0), price);
    builder.lend(task, task, size);
  }
  builder.options.memory_limits = {Bytes{10}};
  EXPECT_EQ(builder.times(), Times({{0, 20}, {0, 30}, {20, 30}}));
  builder.options.memory_limits = {Bytes{13}};
  EXPECT_EQ(builder.times(), Times({{0, 20}, {0, 30}, {0, 10}}));
}

TEST(Allocations, CountWhatIsHeldFromTheStart) {
  GateBuilder builder;
  for (int i = 0; i < 2; ++i) {
    const TaskId task = builder.task(builder.lane(0), 10);
    builder.lend(task, task, 3);
  }
  builder.graph.hold(DeviceId{0}, MemoryKind::kParameters, Bytes{4});
  builder.options.memory_limits = {Bytes{10}};
  EXPECT_EQ(builder.times(), Times({{0, 10}, {0, 10}}));
  builder.options.memory_limits = {Bytes{9}};
  EXPECT_EQ(builder.times(), Times({{0, 10}, {10, 20}}));
  builder.options.memory_limits = {Bytes{3}};
  EXPECT_EQ(builder.sentence(), "device 0 holds 4 bytes from the start, more than its limit of 3");
}

// The second task wants all memory at 5; the third comes later, fits beside the first and goes
// ahead.
TEST(Allocations, ThatFitGoAheadOfThoseThatDoNot) {
  GateBuilder builder;
  const TaskId first = builder.task(builder.lane(0), 100);
  const TaskId second = builder.task(builder.lane(0), 10, {builder.task(builder.lane(0), 5)});
  const TaskId third = builder.task(builder.lane(0), 10, {builder.task(builder.lane(0), 7)});
  builder.lend(first, first, 5);
  builder.lend(second, second, 10);
  builder.lend(third, third, 5);
  builder.options.memory_limits = {Bytes{10}};
  const Times times = builder.times();
  EXPECT_EQ(times[second], (TaskTimes{100, 110}));
  EXPECT_EQ(times[third], (TaskTimes{7, 17}));
}

// Two tasks wait for the same room, and the one that has waited longer has the higher id.
TEST(Allocations, AreServedInTheOrderInWhichTheyCame) {
  GateBuilder builder;
  const TaskId first = builder.task(builder.lane(0), 100);
  const TaskId late = builder.task(builder.lane(0), 10, {builder.task(builder.lane(0), 9)});
  const TaskId early = builder.task(builder.lane(0), 10, {builder.task(builder.lane(0), 5)});
  for (const TaskId task : {first, late, early}) builder.lend(task, task, 10);
  builder.options.memory_limits = {Bytes{10}};
  const Times times = builder.times();
  EXPECT_EQ(times[early], (TaskTimes{100, 110}));
  EXPECT_EQ(times[late], (TaskTimes{110, 120}));
}

// One byte is given back at 28, at the start of a task. It goes to the task that has waited since
// 11, not to the one that comes at 28 and has a lower id.
TEST(Allocations, ThatHaveWaitedLongerGetWhatAStartGivesBack) {
  GateBuilder builder;
  const LaneId lane = builder.lane(0);
  const TaskId taker = builder.task(lane, 28);
  const TaskId giver = builder.task(lane, 5);
  builder.memory(taker, When::kStart, 1);
  builder.memory(giver, When::kStart, -1);
  const TaskId late = builder.task(builder.lane(0), 10, {taker});
  const TaskId early = builder.task(builder.lane(0), 10, {builder.task(builder.lane(0), 11)});
  builder.lend(late, late, 1);
  builder.lend(early, early, 4);
  builder.options.memory_limits = {Bytes{4}};
  const Times times = builder.times();
  EXPECT_EQ(times[giver], (TaskTimes{28, 33}));
  EXPECT_EQ(times[early], (TaskTimes{28, 38}));
  EXPECT_EQ(times[late], (TaskTimes{38, 48}));
}

// A task has room from its start for what it allocates at its end.
TEST(Allocations, AtTheEndOfATaskAreReservedAtItsStart) {
  GateBuilder builder;
  const TaskId first = builder.task(builder.lane(0), 10);
  const TaskId second = builder.task(builder.lane(0), 20);
  const TaskId last = builder.task(builder.lane(0), 10, {first});
  builder.memory(first, When::kEnd, 6);
  builder.memory(last, When::kEnd, -6);
  builder.lend(second, second, 6);
  builder.options.memory_limits = {Bytes{10}};
  EXPECT_EQ(builder.times(), Times({{0, 10}, {20, 40}, {10, 20}}));
}

// Two forwards keep 6 bytes each until their backwards, which come after both.
TEST(Allocations, ThatNobodyMakesRoomForStarve) {
  GateBuilder builder;
  const LaneId compute = builder.lane(0);
  const TaskId forward[] = {builder.task(compute, 10), builder.task(compute, 10)};
  for (const TaskId task : forward) builder.lend(task, builder.task(compute, 10, {task}), 6);
  const TaskId other = builder.task(builder.lane(1), 5, {forward[0]});
  builder.lend(other, other, 7);
  builder.options.memory_limits = {Bytes{10}};
  EXPECT_EQ(builder.sentence(),
            "starvation: task 1 on device 0 waits for 6 bytes on device 0, where 4 are free; task "
            "4 on device 1 waits for 7 bytes on device 0, where 4 are free");
  builder.options.memory_limits = {Bytes{19}};
  EXPECT_EQ(builder.sentence(), "");
}

TEST(Allocations, OfManyStarvingTasksSixAreNamed) {
  GateBuilder builder;
  for (int i = 0; i < 8; ++i) builder.memory(builder.task(builder.lane(0), 1), When::kStart, 2);
  builder.options.memory_limits = {Bytes{1}};
  const std::string sentence = builder.sentence();
  EXPECT_NE(sentence.find("task 5 on device 0 waits for 2 bytes"), std::string::npos);
  EXPECT_EQ(sentence.find("task 6"), std::string::npos);
  EXPECT_TRUE(sentence.ends_with("; so do 2 more")) << sentence;
}

// Lane 0 has tasks 0, 1 and 2; they could start at 20, 10 and 0.
struct OneLane : GateBuilder {
  OneLane() {
    const LaneId compute = lane(0);
    for (int i = 0; i < 3; ++i) add(compute, work(15), {});
    for (int i = 0; i < 2; ++i) {
      graph.add_dependency(static_cast<TaskId>(i), task(lane(0, Lane::kHost), 20 - 10 * i));
    }
  }
  Times run(Dispatch dispatch, const std::vector<std::int32_t>& priorities = {}) {
    options.dispatch = {dispatch};
    options.priorities = priorities;
    Times all = times();
    all.resize(3);
    return all;
  }
};

TEST(Dispatching, RunsALaneByItsRule) {
  OneLane lane;
  EXPECT_EQ(lane.run(Dispatch::kInOrder), Times({{20, 35}, {35, 50}, {50, 65}}));
  EXPECT_EQ(lane.run(Dispatch::kFirstReady), Times({{30, 45}, {15, 30}, {0, 15}}));
  // Task 2 alone is there at 0, task 1 alone at 15, and task 0 at 30.
  EXPECT_EQ(lane.run(Dispatch::kPriority, {3, 2, 1}), Times({{30, 45}, {15, 30}, {0, 15}}));
}

TEST(Dispatching, ByPriorityTakesTheHighestOfThoseThatCouldStart) {
  GateBuilder builder;
  const LaneId compute = builder.lane(0);
  for (int i = 0; i < 4; ++i) builder.task(compute, 10);
  builder.options.dispatch = {Dispatch::kPriority};
  builder.options.priorities = {-1, 5, 0, 5};
  EXPECT_EQ(builder.times(), Times({{30, 40}, {0, 10}, {20, 30}, {10, 20}}));
  builder.options.priorities = {};
  EXPECT_EQ(builder.times(), Times({{0, 10}, {10, 20}, {20, 30}, {30, 40}}));
}

// Task 0 could start from 5 on, but finds no room until 50; the lane goes on with task 1, which
// could start at 20.
TEST(Dispatching, PassesOverATaskWithoutRoomUnlessTheLaneIsInOrder) {
  GateBuilder builder;
  const LaneId holding = builder.lane(0);
  const TaskId holder = builder.task(holding, 50);
  const LaneId compute = builder.lane(0);
  const TaskId large = builder.task(compute, 10, {builder.task(builder.lane(0), 5)});
  const TaskId small = builder.task(compute, 10, {builder.task(builder.lane(0), 20)});
  builder.lend(holder, holder, 5);
  builder.lend(large, large, 10);
  builder.options.memory_limits = {Bytes{10}};
  EXPECT_EQ(builder.times()[large], (TaskTimes{50, 60}));
  EXPECT_EQ(builder.times()[small], (TaskTimes{60, 70}));
  builder.options.dispatch = {Dispatch::kInOrder, Dispatch::kFirstReady};
  EXPECT_EQ(builder.times()[large], (TaskTimes{50, 60}));
  EXPECT_EQ(builder.times()[small], (TaskTimes{20, 30}));
}

// A cycle through the order of a lane is none where the lane may choose.
TEST(Dispatching, FreesALaneFromAnOrderThatDeadlocks) {
  GateBuilder builder;
  const LaneId compute = builder.lane(0);
  const TaskId first = builder.task(compute, 10);
  const TaskId second = builder.task(compute, 10);
  builder.graph.add_dependency(first, second);
  EXPECT_EQ(builder.sentence(),
            "deadlock: task 0 on device 0 waits for task 1 on device 0 waits for task 0 on device "
            "0");
  builder.options.dispatch = {Dispatch::kFirstReady};
  EXPECT_EQ(builder.times(), Times({{10, 20}, {0, 10}}));
  builder.graph.add_dependency(second, first);
  EXPECT_EQ(builder.sentence(),
            "deadlock: task 0 on device 0 waits for task 1 on device 0 waits for task 0 on device "
            "0");
}

}  // namespace
}  // namespace frazil
