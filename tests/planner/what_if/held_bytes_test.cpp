#include "planner/what_if/held_bytes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "planner/plan/schedule_facts.h"
#include "planner/schedules/make_schedule.h"
#include "planner/what_if/what_if.h"
#include "profiles/error.h"

namespace frazil {
namespace {

WhatIf ask(ScheduleKind kind, WhatIfMemory memory) {
  WhatIf what_if;
  what_if.stages = 4;
  what_if.micro_batches = 8;
  what_if.schedule = kind;
  what_if.forward = what_if.backward_input = what_if.backward_weight = {Duration{12}};
  what_if.memory = std::move(memory);
  return what_if;
}

std::vector<Bytes> peaks_of(const WhatIf& what_if) {
  return answer_what_if(make_what_if(what_if), what_if.memory).peak_bytes;
}

TEST(HeldBytes, Of1f1bAreStateAndOneMicroBatchLessOnEachDevice) {
  const WhatIf what_if =
      ask(ScheduleKind::kOneForwardOneBackward, {.activation = {Bytes{10}}, .state = {Bytes{3}}});
  EXPECT_EQ(peaks_of(what_if), (std::vector{Bytes{43}, Bytes{33}, Bytes{23}, Bytes{13}}));
}

TEST(HeldBytes, TakeAValueForEachDevice) {
  const WhatIf what_if = ask(ScheduleKind::kGpipe, {.activation = {{1}, {2}, {3}, {4}},
                                                    .state = {{0}, {100}, {200}, {300}}});
  EXPECT_EQ(peaks_of(what_if), (std::vector{Bytes{8}, Bytes{116}, Bytes{224}, Bytes{332}}));
}

// With as many bytes as a device has chunks, a chunk is one byte.
TEST(HeldBytes, AreTheChunksInFlightWhereAChunkIsOneByte) {
  for (const ScheduleFacts& facts : all_schedules()) {
    const WhatIf what_if = ask(facts.kind, {.activation = {Bytes{facts.chunks}}});
    const WhatIfAnswer answer = answer_what_if(make_what_if(what_if), what_if.memory);
    ASSERT_EQ(answer.peak_bytes.size(), answer.peak_chunks.size());
    for (std::size_t device = 0; device < answer.peak_bytes.size(); ++device) {
      EXPECT_EQ(answer.peak_bytes[device], Bytes{answer.peak_chunks[device]}) << facts.name;
    }
  }
}

// Counts along the lists of the schedule, micro-batch by micro-batch: a stage keeps 3 bytes from F
// to R and 10 from R to B; the last one, which does not recompute, 10 from F to B.
std::vector<Bytes> count_along_lists(const WhatIf& what_if) {
  const auto [profile, cluster, plan] = make_what_if(what_if);
  std::vector<Bytes> peaks;
  const Schedule schedule = make_schedule(plan, 4, Setting{profile, cluster});
  for (const auto& list : schedule.devices) {
    std::map<int, std::int64_t> kept;
    std::int64_t most = 0;
    for (const Action& action : list) {
      const int micro_batch = action.micro_batches->first.value;
      const bool is_last = action.stage.value == 3;
      if (action.kind == ActionKind::kForward) kept[micro_batch] = is_last ? 10 : 3;
      if (action.kind == ActionKind::kRecompute) kept[micro_batch] = 10;
      if (action.kind == ActionKind::kBackward) kept.erase(micro_batch);
      std::int64_t now = 0;
      for (const auto& [number, bytes] : kept) now += bytes;
      most = std::max(most, now);
    }
    peaks.push_back({most});
  }
  return peaks;
}

TEST(HeldBytes, OfAStageThatRecomputesAreItsInputsUntilItDoes) {
  const WhatIf what_if =
      ask(ScheduleKind::kVaruna, {.activation = {Bytes{10}}, .input = {Bytes{3}}});
  const std::vector<Bytes> peaks = peaks_of(what_if);
  EXPECT_EQ(peaks, count_along_lists(what_if));
  // Seven inputs beside the one micro-batch that is there in full.
  EXPECT_EQ(peaks.front(), Bytes{31});
}

TEST(HeldBytes, CountWhatIsRecomputedInFullWhereTheInputIsNotKnown) {
  const WhatIfMemory memory{.activation = {Bytes{10}}};
  EXPECT_EQ(peaks_of(ask(ScheduleKind::kVaruna, memory)).front(), Bytes{80});
  EXPECT_NE(tell_full_count(memory, ScheduleKind::kVaruna), "");
  EXPECT_EQ(tell_full_count(memory, ScheduleKind::kGpipe), "");
  EXPECT_EQ(
      tell_full_count({.activation = {Bytes{10}}, .input = {Bytes{3}}}, ScheduleKind::kVaruna), "");
}

TEST(HeldBytes, HoldTheStateOfBothDirections) {
  const WhatIf what_if =
      ask(ScheduleKind::kChimera, {.activation = {Bytes{0}}, .state = {Bytes{7}}});
  EXPECT_EQ(peaks_of(what_if), std::vector<Bytes>(4, Bytes{14}));
}

TEST(HeldBytes, AreRefusedInListsOfAWrongLengthAndPastWhatFits) {
  EXPECT_THROW(peaks_of(ask(ScheduleKind::kGpipe, {.activation = {{1}, {2}}})), InputError);
  EXPECT_THROW(peaks_of(ask(ScheduleKind::kGpipe, {.activation = {{1}}, .state = {{1}, {2}, {3}}})),
               InputError);
  EXPECT_THROW(peaks_of(ask(ScheduleKind::kVaruna, {.activation = {{2}}, .input = {{3}}})),
               InputError);
  EXPECT_THROW(peaks_of(ask(ScheduleKind::kVaruna, {.activation = {{2}}, .input = {{1}, {2}}})),
               InputError);
  EXPECT_THROW(peaks_of(ask(ScheduleKind::kGpipe, {.activation = {{std::int64_t{1} << 60}}})),
               InputError);
}

TEST(HeldBytes, ThatFitAreToldFromThoseThatDoNot) {
  const WhatIfMemory memory{.activation = {Bytes{1}}, .limit = Bytes{2048}};
  EXPECT_EQ(find_excess(memory, {Bytes{2048}, Bytes{1}}), std::nullopt);
  EXPECT_EQ(find_excess(memory, {Bytes{1}, Bytes{4096}}),
            "needs 4.00 KiB on device 1, limit 2.00 KiB");
}

}  // namespace
}  // namespace frazil
