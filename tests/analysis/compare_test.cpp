#include "analysis/compare.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "profiles/error.h"
#include "profiles/text_file.h"
#include "tests/analysis/sample_runs.h"
#include "traces/timeline_csv.h"

namespace frazil {
namespace {

using Kind = ActionKind;

TEST(Compare, JoinsMeansByStageAndKind) {
  Timeline predicted;
  predicted.devices = 1;
  add_span(predicted, 0, Lane::kCompute, stage_action(0, Kind::kForward, 0), 0, 100);
  add_span(predicted, 0, Lane::kCompute, stage_action(0, Kind::kForward, 1), 100, 300);
  add_span(predicted, 0, Lane::kCompute, stage_action(0, Kind::kBackward, 0), 300, 500);
  Timeline measured;
  measured.devices = 1;
  for (Step step = 5; step < 7; ++step) {
    const std::int64_t begin = 1000 * step;
    add_span(measured, 0, Lane::kCompute, stage_action(0, Kind::kForward, 0, step), begin,
             begin + 200);
    add_span(measured, 0, Lane::kCompute, stage_action(0, Kind::kForward, 1, step), begin + 200,
             begin + 600);
    add_span(measured, 0, Lane::kCompute, stage_action(0, Kind::kBackward, 0, step), begin + 600,
             begin + 700);
  }
  const Comparison comparison = compare(predicted, measured);
  ASSERT_EQ(comparison.actions.size(), 2U);
  const ActionRow& forward = comparison.actions[0];
  EXPECT_EQ(forward.kind, Kind::kForward);
  EXPECT_EQ(forward.count, 4);
  EXPECT_EQ(forward.predicted, Duration{150});
  EXPECT_EQ(forward.measured, Duration{300});
  EXPECT_DOUBLE_EQ(forward.ratio(), 0.5);
  EXPECT_DOUBLE_EQ(comparison.actions[1].ratio(), 2.0);
  EXPECT_EQ(comparison.predicted_step, Duration{500});
  EXPECT_EQ(comparison.measured_step, Duration{700});
  EXPECT_DOUBLE_EQ(comparison.step_ratio, 500.0 / 700.0);
  ASSERT_EQ(comparison.steps.size(), 2U);
  EXPECT_EQ(comparison.steps[1].step, 6);
  EXPECT_EQ(comparison.steps[1].measured, Duration{700});
  EXPECT_TRUE(comparison.only_predicted.empty());
  EXPECT_TRUE(comparison.only_measured.empty());
}

TEST(Compare, CutsSpikesFromStepsAndActionsAlike) {
  const Timeline predicted = one_forward(100, 0);
  Timeline measured;
  measured.devices = 1;
  for (Step step = 0; step < 10; ++step) {
    const std::int64_t begin = 10000 * step;
    add_span(measured, 0, Lane::kCompute, stage_action(0, Kind::kForward, 0, step), begin,
             begin + (step == 3 ? 9000 : 100));
  }
  const Comparison comparison = compare(predicted, measured);
  EXPECT_EQ(comparison.measured_step, Duration{100});
  EXPECT_EQ(comparison.actions.at(0).measured, Duration{100});
  EXPECT_EQ(comparison.steps.at(3).measured, Duration{9000});
}

TEST(Compare, KeepsPipelinesApart) {
  Timeline predicted;
  Timeline measured;
  for (std::int32_t pipeline = 0; pipeline < 2; ++pipeline) {
    const Action action =
        make_action(PipelineId{pipeline}, StageId{0}, Kind::kForward, MicroBatchId{pipeline});
    add_span(predicted, pipeline, Lane::kCompute, action, 0, 10);
    add_span(measured, pipeline, Lane::kCompute, action, 0, 10 + 10 * pipeline);
  }
  const Comparison comparison = compare(predicted, measured);
  ASSERT_EQ(comparison.actions.size(), 2U);
  EXPECT_EQ(comparison.actions[1].pipeline, PipelineId{1});
  EXPECT_DOUBLE_EQ(comparison.actions[0].ratio(), 1.0);
  EXPECT_DOUBLE_EQ(comparison.actions[1].ratio(), 0.5);
}

TEST(Compare, CountsAPairForTheStageOfItsForwardHalf) {
  Timeline timeline;
  timeline.devices = 1;
  const Action forward = stage_action(3, Kind::kForward, 1);
  const Action backward = stage_action(2, Kind::kBackward, 0);
  add_span(timeline, 0, Lane::kCompute, make_pair_action(forward, backward), 0, 10);
  const Comparison comparison = compare(timeline, timeline);
  ASSERT_EQ(comparison.actions.size(), 1U);
  EXPECT_EQ(comparison.actions[0].kind, Kind::kPair);
  EXPECT_EQ(comparison.actions[0].stage, StageId{3});
}

TEST(Compare, ListsActionsWithoutCounterpartInOrder) {
  Timeline predicted = one_forward(100, 0);
  Timeline measured = one_forward(100, 4);
  add_span(predicted, 0, Lane::kSend, stage_action(0, Kind::kSendForward, 0), 100, 110);
  for (const int micro_batch : {10, 9, 2}) {
    add_span(measured, 0, Lane::kCompute, stage_action(0, Kind::kBackward, micro_batch, 4), 200,
             210);
  }
  const Comparison comparison = compare(predicted, measured);
  EXPECT_EQ(comparison.actions.size(), 1U);  // a kind of one side only makes no row
  EXPECT_EQ(comparison.only_predicted, std::vector<std::string>{"0SEND_F0"});
  EXPECT_EQ(comparison.only_measured, (std::vector<std::string>{"0B2", "0B9", "0B10"}));
}

// The simulator draws what all wait for on the host, the executor on each device, where it has it.
TEST(Compare, MissesNoBarrier) {
  Timeline predicted = one_forward(100, 0);
  Timeline measured = one_forward(100, 4);
  Action barrier = make_stage_action(PipelineId{0}, StageId{0}, Kind::kBarrier);
  add_span(predicted, 0, Lane::kHost, barrier, 100, 110);
  barrier.step = 4;
  add_span(measured, 0, Lane::kCollective, barrier, 100, 130);
  const Comparison comparison = compare(predicted, measured);
  EXPECT_TRUE(comparison.only_predicted.empty());
  EXPECT_TRUE(comparison.only_measured.empty());
}

TEST(Compare, NamesTwentyOfManyLoneActions) {
  const Timeline predicted = one_forward(100, 0);
  Timeline measured = one_forward(100, 0);
  for (int i = 0; i < 25; ++i) {
    add_span(measured, 0, Lane::kCompute, stage_action(0, Kind::kBackward, i), 200 + i, 201 + i);
  }
  const Comparison comparison = compare(predicted, measured);
  ASSERT_EQ(comparison.only_measured.size(), 21U);
  EXPECT_EQ(comparison.only_measured[19], "0B19");
  EXPECT_EQ(comparison.only_measured[20], "and 5 more");
}

TEST(Compare, HasARatioWithoutMeasuredTime) {
  EXPECT_EQ(compare(Timeline{}, Timeline{}).step_ratio, 1.0);
  EXPECT_TRUE(std::isinf(compare(one_forward(100, 0), Timeline{}).step_ratio));
}

TEST(Compare, IsAskedForOneStepOrOneWindow) {
  Timeline two_steps = one_forward(100, 0);
  add_span(two_steps, 0, Lane::kCompute, stage_action(0, Kind::kForward, 0, 2), 100, 200);
  EXPECT_THROW(compare(two_steps, two_steps), std::logic_error);
}

TEST(Compare, SpeaksJson) {
  const nlohmann::json json =
      nlohmann::json::parse(to_json(compare(one_forward(100, 0), one_forward(200, 9))));
  EXPECT_EQ(json.at("predicted_step_ns"), 100);
  EXPECT_EQ(json.at("measured_step_ns"), 200);
  EXPECT_EQ(json.at("step_ratio"), 0.5);
  EXPECT_EQ(json.at("actions").at(0).at("action"), "F");
  EXPECT_EQ(json.at("steps").at(0).at("step"), 9);
  const nlohmann::json empty =
      nlohmann::json::parse(to_json(compare(one_forward(100, 0), Timeline{})));
  EXPECT_TRUE(empty.at("step_ratio").is_null());
}

TEST(ReadPrediction, RefusesStepsThatAreNoWindow) {
  const TemporaryFolder folder("read_prediction");
  Timeline timeline = one_forward(100, 0);
  write_text_file(folder.path() / "one.csv", to_csv(timeline));
  EXPECT_EQ(read_prediction(folder.path() / "one.csv"), timeline);
  add_span(timeline, 0, Lane::kCompute, stage_action(0, Kind::kForward, 0, 1), 100, 200);
  write_text_file(folder.path() / "window.csv", to_csv(timeline));
  EXPECT_EQ(read_prediction(folder.path() / "window.csv"), timeline);
  add_span(timeline, 0, Lane::kCompute, stage_action(0, Kind::kForward, 0, 3), 200, 300);
  write_text_file(folder.path() / "gap.csv", to_csv(timeline));
  try {
    read_prediction(folder.path() / "gap.csv");
    FAIL() << "steps with a gap were taken";
  } catch (const InputError& error) {
    EXPECT_EQ(error.found(), "3 steps");
    EXPECT_EQ(error.expected(), "the one step of a prediction, or the steps 0, 1, ... of a window");
  }
}

// Two steps of 100 ns that overlap by half are 150 ns, 75 a step.
TEST(Compare, TakesTheStepsOfAWindowTogether) {
  const auto add_window = [](Timeline& timeline, Step first, int begin, int length) {
    for (int i = 0; i < 2; ++i) {
      add_span(timeline, i, Lane::kCompute,
               stage_action(0, Kind::kForward, 0, static_cast<int>(first) + i),
               begin + i * length / 2, begin + i * length / 2 + length);
    }
  };
  Timeline predicted{.devices = 2, .spans = {}};
  add_window(predicted, 0, 0, 100);
  Timeline measured{.devices = 2, .spans = {}};
  add_window(measured, 4, 1000, 200);
  add_window(measured, 6, 2000, 120);
  const Comparison comparison = compare(predicted, measured);
  EXPECT_EQ(comparison.window, 2);
  EXPECT_EQ(comparison.predicted_step, Duration{75});
  ASSERT_EQ(comparison.steps.size(), 2U);
  EXPECT_EQ(comparison.steps[0].step, 4);
  EXPECT_EQ(comparison.steps[0].measured, Duration{150});
  EXPECT_EQ(comparison.steps[1].step, 6);
  EXPECT_EQ(comparison.steps[1].measured, Duration{90});
  EXPECT_EQ(representative_step(comparison), 6);
}

TEST(ReadMeasuredSteps, RefusesATimeLineWithoutSpans) {
  const TemporaryFolder folder("read_measured_steps");
  const auto file = folder.path() / "measured.csv";
  write_text_file(file, to_csv(one_forward(100, 3)));
  EXPECT_EQ(read_measured_steps(file), one_forward(100, 3));
  write_text_file(file, to_csv(Timeline{}));
  try {
    read_measured_steps(file);
    FAIL() << "nothing was taken for a measurement";
  } catch (const InputError& error) {
    EXPECT_EQ(error.file(), file.string());
    EXPECT_EQ(error.found(), "0 steps");
    EXPECT_EQ(error.expected(), "at least one measured step");
  }
}

}  // namespace
}  // namespace frazil
