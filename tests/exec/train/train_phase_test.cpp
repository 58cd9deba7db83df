#include "exec/train/train_phase.h"

#include <gtest/gtest.h>

#include <string>

namespace frazil {
namespace {

// Takes the steps of a phase as a run does, each sampled one with two spans.
TrainPhase run_phase(Step first, Step length) {
  TrainPhase phase;
  phase.first_step = first;
  phase.measured.devices = 1;
  for (Step step = first; step < first + length; ++step) {
    if (!is_sampled(phase, step)) continue;
    Span span;
    span.action.step = step;
    StepResult sampled;
    sampled.spans = {span, span};
    keep_sample(phase, sampled);
  }
  return phase;
}

TEST(SampledPhase, HasEveryEighthStepWhileItIsShort) {
  const TrainPhase phase = run_phase(100, 323);
  EXPECT_EQ(steps_of(phase.measured).size(), 40U);
  EXPECT_EQ(steps_of(phase.measured).front(), 103);
  EXPECT_EQ(steps_of(phase.measured).back(), 415);
  EXPECT_EQ(steps_of(run_phase(0, 11).measured), std::vector<Step>{3});
  EXPECT_TRUE(run_phase(0, 3).measured.spans.empty());
}

TEST(SampledPhase, IsSampledEvenlyToItsEndHoweverLongItIs) {
  for (const Step length : {324, 600, 643, 644, 880, 5'000, 100'001}) {
    SCOPED_TRACE("length " + std::to_string(length));
    constexpr Step kFirst = 7;
    const TrainPhase phase = run_phase(kFirst, length);
    const std::vector<Step> steps = steps_of(phase.measured);
    EXPECT_GE(steps.size(), 21U);
    EXPECT_LE(steps.size(), 40U);
    EXPECT_EQ(phase.measured.spans.size(), 2 * steps.size()) << "whole steps are kept";
    EXPECT_EQ(steps.front(), kFirst + 3);
    EXPECT_GE(steps.back(), kFirst + length - phase.sampled_every);
    for (std::size_t i = 1; i < steps.size(); ++i) {
      EXPECT_EQ(steps[i] - steps[i - 1], phase.sampled_every);
    }
  }
}

TEST(SampledPhase, IsAsSureOfItsClocksAsItsWorstStep) {
  TrainPhase phase;
  StepResult step;
  keep_sample(phase, step);
  EXPECT_FALSE(phase.clock_uncertainty);
  for (const int uncertainty : {5, 9, 7}) {
    step.clock_uncertainty = Duration{uncertainty};
    keep_sample(phase, step);
  }
  EXPECT_EQ(phase.clock_uncertainty, Duration{9});
}

}  // namespace
}  // namespace frazil
