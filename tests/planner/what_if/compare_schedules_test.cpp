#include "planner/what_if/compare_schedules.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "planner/plan/schedule_facts.h"

namespace frazil {
namespace {

using std::chrono::milliseconds;

WhatIf unit_question(int stages, int micro_batches) {
  WhatIf what_if;
  what_if.stages = stages;
  what_if.micro_batches = micro_batches;
  what_if.forward = what_if.backward_input = what_if.backward_weight = {milliseconds(4)};
  return what_if;
}

const ComparedSchedule& find(const std::vector<ComparedSchedule>& compared, ScheduleKind kind,
                             int chunks) {
  return *std::find_if(compared.begin(), compared.end(), [&](const ComparedSchedule& row) {
    return row.what_if.schedule == kind && row.what_if.chunks == chunks;
  });
}

TEST(CompareSchedules, InterleavedZeroBubbleWinsUnderABarrierAtUnitCosts) {
  const auto compared = compare_schedules(unit_question(8, 32));
  EXPECT_EQ(compared.front().what_if.schedule, ScheduleKind::kInterleavedZb);
  EXPECT_EQ(compared.front().what_if.chunks, 4);
  EXPECT_DOUBLE_EQ(compared.front().most_in_flight, 8);
}

TEST(CompareSchedules, RanksByMakespanAndKeepsWhatCannotBeMadeWithItsReason) {
  const auto compared = compare_schedules(unit_question(3, 7));
  bool feasible = true;
  Duration last{0};
  for (const ComparedSchedule& row : compared) {
    if (!row.reason.empty()) feasible = false;
    if (row.reason.empty()) {
      EXPECT_TRUE(feasible) << "a feasible schedule after one that is not";
      EXPECT_GE(row.answer.makespan, last);
      last = row.answer.makespan;
    }
  }
  EXPECT_NE(find(compared, ScheduleKind::kChimera, 1).reason, "");
  EXPECT_NE(find(compared, ScheduleKind::kDualPipe, 1).reason, "");
  EXPECT_EQ(find(compared, ScheduleKind::kOneForwardOneBackward, 1).reason, "");
}

TEST(CompareSchedules, HoldsTheLimitOnMicroBatchesInFlight) {
  const auto compared = compare_schedules(unit_question(8, 32), {.most_in_flight = 5.0});
  EXPECT_EQ(compared.front().what_if.schedule, ScheduleKind::kVHalf);
  EXPECT_EQ(find(compared, ScheduleKind::kGpipe, 1).reason,
            "needs 32 micro-batches in flight per device, limit 5");
}

TEST(CompareSchedules, PrintsARowForEverySchedule) {
  const auto compared = compare_schedules(unit_question(4, 8));
  const std::string text = print_comparison(compared);
  const auto rows = std::count(text.begin(), text.end(), '\n');
  // Below the question and the titles.
  EXPECT_EQ(static_cast<std::size_t>(rows), compared.size() + 2);
  // Four families have two numbers of chunks; the two families without a flush are left out.
  EXPECT_EQ(compared.size(), all_schedules().size() - 2 + 4);
  EXPECT_NE(text.find("1f1b                   132.000 ms    27.3%"), std::string::npos) << text;
  const auto json = nlohmann::json::parse(comparison_json(compared));
  EXPECT_EQ(json.at("compared").size(), compared.size());
}

}  // namespace
}  // namespace frazil
