#include "sim/simulate.h"

#include <gtest/gtest.h>

#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "profiles/error.h"

namespace frazil {
namespace {

Action act(int stage, ActionKind kind, int micro_batch) {
  return make_action(PipelineId{0}, StageId{stage}, kind, MicroBatchId{micro_batch});
}

// A step of two devices and two micro-batches: forward 10, backward 20, messages of 3 that arrive 1
// later.
struct Example {
  TaskGraph graph;
  ModelProfile profile;
  Cluster cluster =
      make_uniform_cluster(2, Bytes{1000}, {Duration{1}, BytesPerSecond{1'000'000'000}});
  std::vector<Action> actions;
  LaneId compute[2];
  LaneId send[2];
  WorkId forward = graph.add_work(Fixed{Duration{10}});
  WorkId backward = graph.add_work(Fixed{Duration{20}});
  WorkId message = graph.add_work(Transfer{DeviceId{0}, DeviceId{1}, Bytes{3}});
  WorkId hop = graph.add_work(Hop{DeviceId{0}, DeviceId{1}});
  WorkId nothing = graph.add_work(Fixed{});

  Example() {
    for (int device = 0; device < 2; ++device) {
      compute[device] = graph.add_lane(DeviceId{device}, Lane::kCompute);
      send[device] = graph.add_lane(DeviceId{device}, Lane::kSend);
    }
  }

  TaskId add(LaneId lane, WorkId work, const Action& action) {
    actions.push_back(action);
    return graph.add_task(lane, work);
  }

  void add_step() {
    for (int micro_batch = 0; micro_batch < 2; ++micro_batch) {
      const TaskId first = add(compute[0], forward, act(0, ActionKind::kForward, micro_batch));
      const TaskId sent = add(send[0], message, act(0, ActionKind::kSendForward, micro_batch));
      const TaskId second = add(compute[1], forward, act(1, ActionKind::kForward, micro_batch));
      graph.add_dependency(sent, first);
      graph.add_dependency(second, sent, hop);
      graph.change_memory({second, MemoryChange::When::kEnd, DeviceId{1}, MemoryKind::kStash, 50});
    }
    add(compute[1], backward, act(1, ActionKind::kBackward, 0));
    add(compute[1], nothing, make_stage_action(PipelineId{0}, StageId{1}, ActionKind::kReshard));
    add(compute[1], nothing, make_stage_action(PipelineId{0}, StageId{1}, ActionKind::kUpdate));
  }

  // Returns the sentence with which the graph is refused, or "" if it is not.
  std::string deadlock(std::span<const Action> named) const {
    try {
      simulate(graph, {profile, cluster}, named);
    } catch (const InfeasibleError& error) {
      return error.what();
    }
    return "";
  }

  Simulation run() const { return simulate(graph, {profile, cluster}, actions); }
};

std::vector<std::int64_t> nanoseconds(const std::vector<TimePoint>& times) {
  std::vector<std::int64_t> counts;
  counts.reserve(times.size());
  for (const TimePoint time : times) {
    counts.push_back(time.time_since_epoch().count());
  }
  return counts;
}

TEST(Simulate, GivesEveryTaskItsTimes) {
  Example example;
  example.add_step();
  const Simulation simulation = example.run();
  EXPECT_EQ(nanoseconds(simulation.start),
            (std::vector<std::int64_t>{0, 10, 14, 10, 20, 24, 34, 54, 54}));
  EXPECT_EQ(nanoseconds(simulation.end),
            (std::vector<std::int64_t>{10, 13, 24, 20, 23, 34, 54, 54, 54}));
  EXPECT_EQ(simulation.makespan, Duration{54});
  EXPECT_FALSE(simulation.extrapolated);
  ASSERT_EQ(simulation.memory.size(), 2u);
  EXPECT_EQ(simulation.memory[0].total, Bytes{0});
  EXPECT_EQ(simulation.memory[1].total, Bytes{100});
}

TEST(Simulate, ATimelineLeavesOutInstantsThatComputeNothing) {
  Example example;
  example.add_step();
  const Timeline timeline = make_timeline(example.graph, example.run(), example.actions, 2);
  EXPECT_EQ(timeline.devices, 2);
  std::vector<std::string> spans;
  for (const Span& span : timeline.spans) {
    spans.push_back(std::to_string(span.start.time_since_epoch().count())
                        .append(" d")
                        .append(std::to_string(span.device.value))
                        .append(" ")
                        .append(lane_name(span.lane))
                        .append(" ")
                        .append(to_text(span.action))
                        .append(" ")
                        .append(std::to_string(span.duration().count())));
  }
  const std::string sending(lane_name(Lane::kSend));
  const std::string computing(lane_name(Lane::kCompute));
  EXPECT_EQ(spans, (std::vector<std::string>{
                       "0 d0 " + computing + " 0F0 10", "10 d0 " + computing + " 0F1 10",
                       "10 d0 " + sending + " 0SEND_F0 3", "14 d1 " + computing + " 1F0 10",
                       "20 d0 " + sending + " 0SEND_F1 3", "24 d1 " + computing + " 1F1 10",
                       "34 d1 " + computing + " 1B0 20", "54 d1 " + computing + " 1U 0"}));
}

TEST(Simulate, AnEmptyGraphTakesNoTime) {
  Example example;
  const Simulation simulation = example.run();
  EXPECT_EQ(simulation.makespan, Duration{0});
  EXPECT_TRUE(make_timeline(example.graph, simulation, {}, 2).spans.empty());
}

TEST(Simulate, ADeadlockIsToldInActions) {
  Example example;
  const TaskId second =
      example.add(example.compute[0], example.forward, act(0, ActionKind::kForward, 1));
  example.add(example.compute[0], example.backward, act(0, ActionKind::kBackward, 0));
  const TaskId waits =
      example.add(example.compute[1], example.forward, act(1, ActionKind::kForward, 1));
  example.graph.add_dependency(second, waits);
  example.graph.add_dependency(waits, second);
  EXPECT_EQ(example.deadlock(example.actions),
            "deadlock: 0F1 on device 0 waits for 1F1 on device 1 waits for 0F1 on device 0");
  EXPECT_EQ(example.deadlock({}),
            "deadlock: task 0 on device 0 waits for task 2 on device 1 waits for task 0 on "
            "device 0");
}

TEST(Simulate, SaysWhenACostWasExtrapolated) {
  Example example;
  Layer layer;
  layer.costs = {{.micro_batch_size = 2, .forward = Duration{8}, .stash = Bytes{0}}};
  example.profile.layers = {layer};
  const WorkId work =
      example.graph.add_work(Compute{DeviceId{0}, 4, {{LayerId{0}, LayerPart::kForward}}});
  example.add(example.compute[0], work, act(0, ActionKind::kForward, 0));
  const Simulation simulation = example.run();
  EXPECT_EQ(simulation.makespan, Duration{16});
  EXPECT_TRUE(simulation.extrapolated);
}

TEST(Simulate, EqualInputsGiveEqualTimelines) {
  Example one;
  one.add_step();
  Example other;
  other.add_step();
  EXPECT_EQ(make_timeline(one.graph, one.run(), one.actions, 2),
            make_timeline(other.graph, other.run(), other.actions, 2));
}

TEST(Simulate, RefusesActionsThatDoNotMatchTheTasks) {
  Example example;
  example.add_step();
  const Simulation simulation = example.run();
  example.actions.pop_back();
  EXPECT_THROW(example.run(), std::logic_error);
  EXPECT_THROW(make_timeline(example.graph, simulation, example.actions, 2), std::logic_error);
}

}  // namespace
}  // namespace frazil
