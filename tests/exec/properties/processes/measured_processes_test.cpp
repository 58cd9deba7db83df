// What several processes measure is on one clock, and what lies between them can be measured.

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <tuple>

#include "tests/exec/support/process_run.h"
#include "tests/exec/support/small_vit.h"

namespace frazil {
namespace {

constexpr int kDevices = 2;

ProcessRun make_run() {
  return ProcessRun(make_vit(small_config()), {}, 7, ProcessShape{.process_of = {0, 1}});
}

PlanShape two_stages() {
  return {.schedule = ScheduleKind::kGpipe, .micro_batches = 2, .cuts = {{4}}, .owned = {2}};
}

// The messages of a step, by what names them: a SEND_F0 of stage 0 is the RECV_F0 of stage 1.
using Messages = std::map<std::string, std::map<ActionKind, Span>>;

Messages list_messages(const std::vector<Span>& spans) {
  Messages messages;
  for (const Span& span : spans) {
    const bool forward = span.action.kind == ActionKind::kSendForward ||
                         span.action.kind == ActionKind::kReceiveForward;
    const bool backward = span.action.kind == ActionKind::kSendBackward ||
                          span.action.kind == ActionKind::kReceiveBackward;
    if (!forward && !backward) continue;
    const std::string name =
        (forward ? "F" : "B") + std::to_string(span.action.micro_batches->first.value);
    messages[name][span.action.kind] = span;
  }
  return messages;
}

TEST(MeasuredProcesses, NoMessageComesBeforeItIsSent) {
  ProcessRun run = make_run();
  run.transition_to(make_small_plan(run.structure(), two_stages()));
  // Clocks are compared by messages that go beside the steps.
  Step first = 0;
  while (!run.step(first, 1e-2, small_micro_batches(first, 2), true).clock_uncertainty) {
    ASSERT_LT(++first, 1000);
  }
  for (Step step = first + 1; step < first + 4; ++step) {
    const StepResult result = run.step(step, 1e-2, small_micro_batches(step, 2), true);
    ASSERT_TRUE(result.clock_uncertainty);
    const Duration slack = *result.clock_uncertainty;
    int compared = 0;
    for (const auto& [name, ends] : list_messages(result.spans)) {
      ASSERT_EQ(ends.size(), 2U) << name;
      const bool forward = name.front() == 'F';
      const Span& sent = ends.at(forward ? ActionKind::kSendForward : ActionKind::kSendBackward);
      const Span& received =
          ends.at(forward ? ActionKind::kReceiveForward : ActionKind::kReceiveBackward);
      EXPECT_NE(sent.device, received.device);
      EXPECT_GE(received.end + slack, sent.start) << name;
      ++compared;
    }
    EXPECT_EQ(compared, 4);
    // All spans lie within the step.
    const Timeline timeline{.devices = kDevices, .spans = result.spans};
    EXPECT_LE(makespan(timeline), result.wall + 2 * slack);
  }
}

TEST(MeasuredProcesses, OneProcessHasOneClock) {
  frazil::Run run(make_vit(small_config()), {}, 7, kDevices);
  run.transition_to(make_small_plan(run.structure(), two_stages()));
  EXPECT_FALSE(run.step(0, 1e-2, small_micro_batches(0, 2), true).clock_uncertainty);
}

TEST(MeasuredProcesses, MessagesReductionsAndCommitsOfAPairAreTimed) {
  ProcessRun run = make_run();
  const PairTimes times =
      run.measure_pair({.sizes = {0, 1 << 12, 1 << 20}, .repetitions = 5, .reductions = 3});
  ASSERT_EQ(times.one_way.size(), 3U);
  for (const std::vector<Duration>& of_size : times.one_way) {
    ASSERT_EQ(of_size.size(), 5U);
    for (const Duration time : of_size) EXPECT_GT(time, Duration{0});
  }
  EXPECT_EQ(times.reductions.size(), 3U);
  const std::vector<Duration> waits = run.measure_commits(4);
  EXPECT_EQ(waits.size(), 8U) << "each device waits for each round";
  for (const Duration wait : waits) EXPECT_GT(wait, Duration{0});
  // The run goes on as if nothing had been measured.
  run.transition_to(make_small_plan(run.structure(), two_stages()));
  EXPECT_GT(run.step(0, 1e-2, small_micro_batches(0, 2)).loss, 0);
}

TEST(MeasuredProcesses, TimesOfAnAnswerAreShiftedTogether) {
  StepAnswer answer;
  answer.spans = {{DeviceId{1}, Lane::kCompute, parse_action("0F0"), TimePoint{Duration{5}},
                   TimePoint{Duration{9}}}};
  answer.memory.resize(1);
  answer.memory[0].curve = {{TimePoint{Duration{7}}, Bytes{1}}};
  shift_times(answer, Duration{-4});
  EXPECT_EQ(answer.spans[0].start, TimePoint{Duration{1}});
  EXPECT_EQ(answer.spans[0].end, TimePoint{Duration{5}});
  EXPECT_EQ(answer.memory[0].curve[0].at, TimePoint{Duration{3}});
}

}  // namespace
}  // namespace frazil
