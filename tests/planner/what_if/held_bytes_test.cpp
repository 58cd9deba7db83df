#include "planner/what_if/held_bytes.h"

#include <gtest/gtest.h>

#include <vector>

#include "planner/plan/schedule_facts.h"
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

TEST(HeldBytes, HoldTheStateOfBothDirections) {
  const WhatIf what_if =
      ask(ScheduleKind::kChimera, {.activation = {Bytes{0}}, .state = {Bytes{7}}});
  EXPECT_EQ(peaks_of(what_if), std::vector<Bytes>(4, Bytes{14}));
}

TEST(HeldBytes, AreRefusedInListsOfAWrongLengthAndPastWhatFits) {
  EXPECT_THROW(peaks_of(ask(ScheduleKind::kGpipe, {.activation = {{1}, {2}}})), InputError);
  EXPECT_THROW(peaks_of(ask(ScheduleKind::kGpipe, {.activation = {{1}}, .state = {{1}, {2}, {3}}})),
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
