// Tests the estimate's order of things. That it holds against the memory really taken is shown by
// tests/findings/d7.py.

#include "planner/what_if/what_if_memory.h"

#include <gtest/gtest.h>

namespace frazil {
namespace {

WhatIf question(int stages, int micro_batches, ScheduleKind schedule) {
  WhatIf what_if;
  what_if.stages = stages;
  what_if.micro_batches = micro_batches;
  what_if.schedule = schedule;
  return what_if;
}

TEST(WhatIfMemory, IsThatOfALargeQuestionWithinAQuarter) {
  // Measured: 5146 MiB.
  const Bytes estimate =
      estimate_memory(question(4096, 2000, ScheduleKind::kOneForwardOneBackward));
  EXPECT_GE(estimate, Bytes{std::int64_t{5146} << 20});
  EXPECT_LE(estimate, Bytes{std::int64_t{6432} << 20});
}

TEST(WhatIfMemory, GrowsWithWhatIsKept) {
  const WhatIf fused = question(4, 1000, ScheduleKind::kOneForwardOneBackward);
  EXPECT_LT(estimate_memory(fused), estimate_memory(question(4, 1000, ScheduleKind::kZbH1)));
  EXPECT_LT(estimate_memory(fused), estimate_memory(question(4, 1000, ScheduleKind::kInterleaved)));
  EXPECT_LT(estimate_memory(fused), estimate_memory(fused, {.timeline = true}));
  EXPECT_LT(estimate_memory(fused, {.timeline = true}), estimate_memory(fused, {.chrome = true}));
  EXPECT_LT(estimate_memory(fused), estimate_memory(fused, {.messages = true}));
}

TEST(WhatIfMemory, OfAComparisonIsThatOfItsLargestSchedule) {
  WhatIf largest = question(4, 1000, ScheduleKind::kInterleavedZb);
  largest.chunks = 4;
  EXPECT_EQ(estimate_comparison(question(4, 1000, ScheduleKind::kGpipe), 4),
            estimate_memory(largest));
}

TEST(WhatIfMemory, DoesNotOverflow) {
  WhatIf what_if = question(1 << 30, 1 << 30, ScheduleKind::kInterleavedZb);
  what_if.chunks = 1 << 30;
  EXPECT_GT(estimate_memory(what_if), Bytes{std::int64_t{1} << 60});
}

}  // namespace
}  // namespace frazil
