// Tests the headlines of papers about schedules against closed forms.

#include "planner/reproduce/headlines/schedule_headlines.h"

#include <gtest/gtest.h>

#include <cmath>

namespace frazil {
namespace {

using std::chrono::milliseconds;

EqualStages unit(int devices, int micro_batches) {
  return {devices, micro_batches, milliseconds{1}, milliseconds{1}, milliseconds{1}};
}

TEST(ScheduleHeadlines, SchedulesTakeWhatTheirClosedFormsSay) {
  const EqualStages stages = unit(4, 8);
  const auto makespan = [&](ScheduleKind kind) { return time_schedule(stages, kind).makespan; };
  // (m + p - 1) T; the same with all W at the end, m W + (m + p - 1) (F + I).
  EXPECT_EQ(makespan(ScheduleKind::kOneForwardOneBackward), milliseconds{33});
  EXPECT_EQ(makespan(ScheduleKind::kTwoBp), milliseconds{30});
  // m T + (p - 1) T / v, with as many chunks as asked for.
  EXPECT_EQ(time_schedule(stages, ScheduleKind::kInterleaved, 2).makespan,
            std::chrono::microseconds{28'500});
  // ZB-H2 idles behind a barrier alone, and holds 2 p - 1 micro-batches.
  const ScheduleTimes split = time_schedule(stages, ScheduleKind::kZbH2);
  EXPECT_EQ(split.span, milliseconds{24});
  EXPECT_EQ(split.makespan, milliseconds{27});
  EXPECT_EQ(split.held, 7);
}

TEST(ScheduleHeadlines, AHopIsPaidBetweenDevices) {
  EqualStages stages = unit(4, 8);
  stages.hop = milliseconds{1};
  // GPipe: 2 (p - 1) hops in all.
  EXPECT_EQ(time_schedule(stages, ScheduleKind::kGpipe).makespan, milliseconds{33 + 6});
}

TEST(ScheduleHeadlines, TheWeightRatioGivesTheSpeedUpThatWasAskedFor) {
  const auto needed = weight_ratio_for(1.70, 4, 4);
  ASSERT_TRUE(needed.has_value());
  EXPECT_NEAR(*needed, 24.5, 1e-9);
  // With W 49 ms and F = I = 1 ms, that is what the two schedules do.
  EqualStages stages = unit(4, 4);
  stages.backward_weight = milliseconds{49};
  const double slow = static_cast<double>(
      time_schedule(stages, ScheduleKind::kOneForwardOneBackward).makespan.count());
  const double fast =
      static_cast<double>(time_schedule(stages, ScheduleKind::kTwoBp).makespan.count());
  EXPECT_NEAR(slow / fast, 1.70, 1e-9);
  // 7 slots against 4 micro-batches: 1.75 would take a W without end.
  EXPECT_FALSE(weight_ratio_for(1.75, 4, 4).has_value());
}

TEST(ScheduleHeadlines, AreWithinATenthButForThoseThatOrderDoesNotDecide) {
  int missed = 0;
  for (const ResultRow& row : list_schedule_headlines()) {
    EXPECT_FALSE(row.reason.empty()) << row.name;
    if (std::abs(row.error()) <= 0.1) continue;
    ++missed;
    EXPECT_TRUE(row.name.starts_with("2BP") || row.name.starts_with("V-Min")) << row.name;
  }
  EXPECT_EQ(missed, 2);
}

}  // namespace
}  // namespace frazil
