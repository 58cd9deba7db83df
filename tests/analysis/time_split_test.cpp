#include "analysis/time_split.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "planner/plan/schedule_facts.h"
#include "planner/what_if/what_if.h"
#include "sim/cost_model.h"
#include "tests/analysis/sample_runs.h"

namespace frazil {
namespace {

using std::chrono::nanoseconds;

// The time lines of a step and what the simulator's own graph says of its idle time.
struct Explained {
  Timeline timeline;
  std::vector<DeviceTime> devices;
};

Explained explain(ScheduleKind kind, int stages, int micro_batches, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto draw = [&](int most) { return Duration{random() % static_cast<unsigned>(most) + 1}; };
  WhatIf what_if;
  what_if.stages = stages;
  what_if.micro_batches = micro_batches;
  what_if.schedule = kind;
  what_if.forward = {draw(900)};
  what_if.backward_input = {draw(900)};
  what_if.backward_weight = {draw(900)};
  what_if.hop = draw(200);
  const WhatIfInputs inputs = make_what_if(what_if);
  const SimulatedStep step = simulate_what_if(inputs);
  const Setting setting{inputs.profile, inputs.cluster};
  Explained explained;
  explained.timeline =
      make_timeline(step.lowered.graph, step.simulation, step.lowered.actions, stages);
  explained.devices = split_makespan(step.lowered, step.simulation,
                                     price_all(step.lowered.graph, setting).of_work, stages);
  return explained;
}

TEST(TimeSplit, OfAPredictionIsWhatTheGraphOfItsTasksSays) {
  for (const ScheduleKind kind :
       {ScheduleKind::kGpipe, ScheduleKind::kOneForwardOneBackward, ScheduleKind::kZbH1,
        ScheduleKind::kInterleaved, ScheduleKind::kZbV}) {
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
      SCOPED_TRACE(std::string(schedule_name(kind)) + ", seed " + std::to_string(seed));
      const Explained explained = explain(kind, 4, 8, seed);
      const std::vector<TimeSplit> splits = split_time(explained.timeline);
      ASSERT_EQ(splits.size(), explained.devices.size());
      for (std::size_t d = 0; d < splits.size(); ++d) {
        EXPECT_EQ(splits[d].parts, explained.devices[d]) << "device " << d;
        EXPECT_EQ(splits[d].between, Duration{0});
      }
      EXPECT_DOUBLE_EQ(bubble(explained.timeline), [&] {
        TimeSplit all;
        for (const TimeSplit& split : splits) all = all + split;
        return all.bubble();
      }());
    }
  }
}

void add(Timeline& timeline, int device, Lane lane, int stage, ActionKind kind, int start,
         int end) {
  add_span(timeline, device, lane, stage_action(stage, kind, 0), start, end);
}

// Device 1 begins to wait at 2 for the F of device 0, which ends at 10; the message is there at 13,
// and the device goes on at 14.
TEST(TimeSplit, OfAMeasurementEndsAWaitWhereItsProducerEnds) {
  Timeline timeline;
  timeline.devices = 2;
  add_span(timeline, 1, Lane::kCompute, stage_action(1, ActionKind::kForward, 7), 0, 2);
  add(timeline, 0, Lane::kCompute, 0, ActionKind::kForward, 0, 10);
  add(timeline, 0, Lane::kSend, 0, ActionKind::kSendForward, 10, 11);
  add(timeline, 1, Lane::kReceive, 1, ActionKind::kReceiveForward, 3, 13);
  add(timeline, 1, Lane::kCompute, 1, ActionKind::kForward, 14, 20);
  add_span(timeline, 1, Lane::kCollective,
           make_stage_action(PipelineId{}, StageId{1}, ActionKind::kReduceGradients), 20, 24);
  add_span(timeline, 1, Lane::kCompute,
           make_stage_action(PipelineId{}, StageId{1}, ActionKind::kUpdate), 25, 30);
  const std::vector<TimeSplit> splits = split_time(timeline);
  EXPECT_EQ(splits.at(0),
            (TimeSplit{{.compute = nanoseconds(10), .drain = nanoseconds(20)}, Duration{0}}));
  EXPECT_EQ(splits.at(1), (TimeSplit{{.compute = nanoseconds(13),
                                      .exposed_communication = nanoseconds(3),
                                      .wait_upstream = nanoseconds(7),
                                      .update = nanoseconds(5)},
                                     nanoseconds(2)}));
  EXPECT_EQ(splits.at(1).total(), nanoseconds(30));
}

TEST(TimeSplit, IsAMeanOverStepsAndDevices) {
  Timeline steps;
  steps.devices = 2;
  for (Step step = 0; step < 2; ++step) {
    const std::int64_t begin = 1000 * step;
    add_span(steps, 0, Lane::kCompute, stage_action(0, ActionKind::kForward, 0, step), begin,
             begin + 10 + 10 * step);
  }
  EXPECT_EQ(mean_splits_by_device(steps).at(0).parts.compute, nanoseconds(15));
  EXPECT_EQ(mean_splits_by_device(steps).at(1).parts.fill, nanoseconds(15));
  EXPECT_DOUBLE_EQ(mean_split(steps).value().bubble(), 1 - 7.0 / 14);
  EXPECT_EQ(mean_split(Timeline{}), std::nullopt);
}

// The second step begins on device 0 when that has ended the first, and on device 1 likewise.
TEST(TimeSplit, OfAWindowIsTheShareOfAStep) {
  Timeline window = two_stages(10, 4, 0);
  const Timeline second = two_stages(10, 5, 100);
  window.spans.insert(window.spans.end(), second.spans.begin(), second.spans.end());
  const std::vector<TimeSplit> alone = mean_splits_by_device(window);
  const std::vector<TimeSplit> shared = mean_splits_by_device(window, 2);
  ASSERT_EQ(shared.size(), 2U);
  for (std::size_t d = 0; d < shared.size(); ++d) {
    EXPECT_EQ(shared[d].total(), makespan(window) / 2);
    EXPECT_EQ(shared[d].parts.compute, alone[d].parts.compute);
  }
  EXPECT_EQ(shared[0].parts.wait_downstream, alone[0].parts.wait_downstream)
      << "no message of one step is taken for that of the other";
  EXPECT_EQ(mean_splits_by_device(window, 3).size(), 0U) << "there is no window of 3 steps";
}

TEST(TimeSplit, NamesEveryPartOnce) {
  TimeSplit split;
  split.between = nanoseconds(1);
  split.parts = {.compute = nanoseconds(2), .drain = nanoseconds(4)};
  Duration all{0};
  for (const std::string_view title : list_titles()) all += part_of(split, title);
  EXPECT_EQ(all, split.total());
}

}  // namespace
}  // namespace frazil
