// Tests the rule that limits a wait: five times the prediction or the first steps, two seconds at
// least.

#include "exec/run/step_deadline.h"

#include <gtest/gtest.h>

namespace frazil {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

TEST(StepDeadline, IsTenMinutesWhereNothingIsKnown) {
  StepDeadline deadline;
  EXPECT_EQ(deadline.time(), minutes(10));
}

TEST(StepDeadline, IsFiveTimesThePredictionAndTwoSecondsAtLeast) {
  StepDeadline deadline;
  deadline.begin_plan(seconds(3));
  EXPECT_EQ(deadline.time(), seconds(15));
  deadline.begin_plan(milliseconds(20));
  EXPECT_EQ(deadline.time(), seconds(2));
}

TEST(StepDeadline, NeverFallsBelowFiveTimesTheFirstSteps) {
  StepDeadline deadline;
  deadline.begin_plan(milliseconds(20));
  deadline.record(seconds(4));
  deadline.record(seconds(1));
  EXPECT_EQ(deadline.time(), seconds(20));
  deadline.record(seconds(2));
  deadline.record(minutes(3));
  EXPECT_EQ(deadline.time(), seconds(20)) << "the fourth step is none of the first";
  deadline.begin_plan(milliseconds(20));
  EXPECT_EQ(deadline.time(), seconds(2)) << "another plan has other steps";
}

TEST(StepDeadline, TakesTheFirstStepsWhereNothingIsPredicted) {
  StepDeadline deadline;
  deadline.begin_plan(kNoTime);
  deadline.record(seconds(1));
  EXPECT_EQ(deadline.time(), seconds(5));
}

TEST(StepDeadline, IsAtMostAYear) {
  StepDeadline deadline;
  deadline.begin_plan(kFarAway);
  EXPECT_LE(deadline.time(), std::chrono::hours(24 * 365));
}

TEST(StepDeadline, GrowsAsOtherProgramsTakeCores) {
  EXPECT_DOUBLE_EQ(slow_down(4, 0), 1);
  EXPECT_DOUBLE_EQ(slow_down(4, 2), 2);
  EXPECT_DOUBLE_EQ(slow_down(4, 100), 8) << "an eighth of the cores is left";
}

}  // namespace
}  // namespace frazil
