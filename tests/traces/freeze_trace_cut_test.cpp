// A freeze trace that was cut between two lines is refused, not read as a shorter run.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "profiles/error.h"
#include "traces/freeze_trace.h"

namespace frazil {
namespace {

using namespace std::chrono_literals;

// Makes two epochs of ten steps; a block freezes with the second.
FreezeTrace make_record() {
  FreezeTrace trace;
  trace.blocks = {"embedding", "head"};
  trace.steps = 20;
  trace.batch_size = 8;
  trace.events = {{0, MaskEvent{FreezeMask::all_active(2)}},
                  {0, PlanEvent{"phase-0/plan.json", "first", 1ms}},
                  {0, TransitionEvent{1ms, 1ms, 1ms, Bytes{0}}},
                  {0, CostEvent{9, 72, 10ms}},
                  {10, EvalEvent{1, 0.5, 0.5, 0.5}},
                  {10, MaskEvent{FreezeMask::frozen_prefix(2, BlockId{0})}},
                  {10, PlanEvent{"phase-1/plan.json", "second", 1ms}},
                  {10, TransitionEvent{1ms, 1ms, 1ms, Bytes{8}}},
                  {10, CostEvent{9, 72, 10ms}},
                  {20, EvalEvent{2, 0.25, 0.25, 0.75}}};
  return trace;
}

// Returns the first `count` lines.
std::string cut(const std::string& text, int count) {
  std::size_t end = 0;
  for (int i = 0; i < count; ++i) end = text.find('\n', end) + 1;
  return text.substr(0, end);
}

// Returns the text as it was written before the header counted events.
std::string without_count(std::string text) {
  const std::string count = "\"events\":10,";
  const std::size_t place = text.find(count);
  EXPECT_NE(place, std::string::npos) << text;
  return text.erase(place, count.size());
}

std::string refusal_of_trace(const std::string& text) {
  try {
    parse_freeze_trace(text, "run.jsonl");
  } catch (const InputError& error) {
    return error.what();
  }
  return "read";
}

constexpr int kLines = 11;

TEST(CutTrace, IsRefusedAtEveryLine) {
  const std::string text = to_jsonl(make_record());
  ASSERT_EQ(refusal_of_trace(text), "read");
  for (int lines = 1; lines < kLines; ++lines) {
    EXPECT_EQ(refusal_of_trace(cut(text, lines)),
              "run.jsonl:" + std::to_string(lines) + ": found the end of the file after event " +
                  std::to_string(lines - 1) +
                  ", expected the 10 events that its first line announces");
  }
  EXPECT_EQ(refusal_of_trace(text + "{\"step\":20,\"kind\":\"mask\",\"mask\":\"01\"}\n"),
            "run.jsonl:12: found the end of the file after event 11, expected the 10 events that "
            "its first line announces");
  EXPECT_EQ(refusal_of_trace(text + "{\"step\":20,\"kind\":\"x-note\"}\n"), "read");
}

TEST(CutTrace, OfARecordWithoutACountIsRefusedWhereItsPlanWasRead) {
  const std::string text = without_count(to_jsonl(make_record()));
  EXPECT_EQ(parse_freeze_trace(text, "run.jsonl"), make_record());
  for (int lines = 3; lines < kLines; ++lines) {
    const int step = lines < 6 ? 0 : 10;
    EXPECT_EQ(refusal_of_trace(cut(text, lines)),
              "run.jsonl:" + std::to_string(lines) + ": found the end of the file at step " +
                  std::to_string(step) +
                  ", expected an event at step 20, the end of the run by its first line");
  }
}

TEST(CutTrace, OfMasksByHandMayEndBeforeTheLastStep) {
  EXPECT_EQ(refusal_of_trace(
                R"({"format":"frazil.freeze_trace","version":1,"model_hash":"","blocks":["a",)"
                R"("b"],"steps":20,"batch_size":8,"provenance":{}})"
                "\n"
                R"({"step":5,"kind":"mask","mask":"01"})"),
            "read");
}

}  // namespace
}  // namespace frazil
