#include "traces/freeze_trace.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <filesystem>
#include <limits>
#include <random>

#include "profiles/error.h"
#include "tests/support/golden.h"
#include "tests/support/write_freeze_trace.h"

namespace frazil {
namespace {

using namespace std::chrono_literals;

FreezeTrace make_trace() {
  FreezeTrace trace;
  trace.model_hash = "00ff";
  trace.blocks = {"embedding", "block \"1\"", "head"};
  trace.steps = 100;
  trace.batch_size = 32;
  trace.provenance = {{"seed", "7"}, {"host", "two\ncores"}};
  const Bytes moved{9'007'199'254'740'993};
  trace.events = {
      {0, MaskEvent{FreezeMask::all_active(3)}},
      {0, PlanEvent{"plan0.json", "2 stages x 1 pipeline, 1f1b, cuts 2", 1500us}},
      {10, CostEvent{10, 320, 17ms}},
      {10, SignalsEvent{{{"gradient_norm.1", 0.1}, {"loss", 2.0}}}},
      {10, SignalsEvent{}},
      {20, MaskEvent{FreezeMask::frozen_prefix(3, BlockId{1})}},
      {20, TransitionEvent{1ms, 2ms, 3ns, moved}},
      {21, MaskEvent{FreezeMask::all_active(3), "validation_guard", "It is \"bad\"."}},
      {21, TransitionEvent{1ms, 2ms, 3ns, moved, TransitionTimes{4ms, 5ms, 6ms}}},
      {21, PlanEvent{"plan1.json", "1 stage", 1ms, true}},
      {29, StepEvent{0.25, 31, 7ms}},
      {30, EvalEvent{3, 1e-300, -0.0, 0.9921875}},
      {30, EvalEvent{3, 0.5, 0.25, 0.75, PartScore{0.125, 1}}},
      {30, CheckpointEvent{8ms, 30}},
      {30, CacheEvent{CacheChange::kBegun, 5, 48, Bytes{4'800}, Bytes{1}, 9ms, 0ns, "48 \"pay\""}},
      {31, CacheEvent{}},
  };
  return trace;
}

TEST(FreezeTrace, WritesOneEventALine) {
  EXPECT_TRUE(matches_golden("traces_freeze.jsonl", to_jsonl(make_trace())));
}

TEST(FreezeTrace, ReadsBackWhatItWrote) {
  const FreezeTrace trace = make_trace();
  const std::string text = to_jsonl(trace);
  const FreezeTrace again = parse_freeze_trace(text, "run.jsonl");
  EXPECT_EQ(again, trace);
  EXPECT_EQ(to_jsonl(again), text);
}

TEST(FreezeTrace, TakesAPlanThatDoesNotSayWhetherItsPredictionIsExtrapolated) {
  FreezeTrace trace;
  trace.blocks = {"all"};
  trace.events = {{0, PlanEvent{"plan.json", "1 stage", 1ms, true}}};
  std::string text = to_jsonl(trace);
  const std::string flag = ",\"extrapolated\":true";
  text.replace(text.find(flag), flag.size(), "");
  trace.events = {{0, PlanEvent{"plan.json", "1 stage", 1ms, false}}};
  EXPECT_EQ(parse_freeze_trace(text, "run.jsonl"), trace);
  EXPECT_EQ(to_jsonl(trace), text);
}

TEST(FreezeTrace, TellsThePlansBatchWhereItIsNotThatOfTheRun) {
  FreezeTrace trace;
  trace.blocks = {"all"};
  trace.batch_size = 32;
  trace.events = {{0, PlanEvent{"plan.json", "2 pipelines", 1ms, true, 64}}};
  const std::string text = to_jsonl(trace);
  EXPECT_NE(text.find(R"("predicted_step_ns":1000000,"extrapolated":true,"batch_size":64})"),
            std::string::npos)
      << text;
  EXPECT_EQ(parse_freeze_trace(text, "run.jsonl"), trace);
  std::string none = text;
  none.replace(none.find(":64}"), 4, ":0}");
  EXPECT_THROW((void)parse_freeze_trace(none, "run.jsonl"), InputError);
}

TEST(FreezeTrace, HasNoAccuracyOfAModelThatDoesNotClassify) {
  FreezeTrace trace;
  trace.blocks = {"all"};
  trace.open = true;
  trace.events = {{5, EvalEvent{.epoch = 1, .loss = 0.5, .validation = PartScore{0.25}}}};
  const std::string text = to_jsonl(trace);
  EXPECT_EQ(text.find("accuracy"), std::string::npos) << text;
  EXPECT_EQ(parse_freeze_trace(text, "log.jsonl"), trace);
}

// The event is written some steps after the checkpoint was taken.
TEST(FreezeTrace, KeepsTheStepOfACheckpoint) {
  FreezeTrace trace;
  trace.blocks = {"all"};
  trace.open = true;
  trace.events = {{23, CheckpointEvent{8ms, 20}}};
  std::string text = to_jsonl(trace);
  EXPECT_NE(text.find(R"({"step":23,"kind":"checkpoint","of":20,"time_ns":8000000})"),
            std::string::npos)
      << text;
  EXPECT_EQ(parse_freeze_trace(text, "log.jsonl"), trace);
  text.replace(text.find("\"of\":20"), 7, "\"of\":24");
  EXPECT_THROW((void)parse_freeze_trace(text, "log.jsonl"), InputError);
}

TEST(FreezeTrace, MayEndWithoutALineEnd) {
  std::string text = to_jsonl(make_trace());
  text.pop_back();
  EXPECT_EQ(parse_freeze_trace(text, "run.jsonl"), make_trace());
}

double random_real(std::mt19937_64& random) {
  while (true) {
    const auto number = std::bit_cast<double>(random());
    if (std::isfinite(number)) return number;
  }
}

TEST(FreezeTrace, KeepsEveryBitOfReals) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937_64 random(seed);
    FreezeTrace trace;
    trace.blocks = {"all"};
    SignalsEvent event;
    for (int i = 0; i < 200; ++i) event.signals[std::to_string(i)] = random_real(random);
    event.signals["small integer"] = static_cast<double>(random() % 1000);
    event.signals["large integer"] = static_cast<double>(random());
    event.signals["denormal"] = std::numeric_limits<double>::denorm_min();
    event.signals["largest"] = std::numeric_limits<double>::max();
    event.signals["minus zero"] = -0.0;
    trace.events.push_back({0, event});
    const std::string text = to_jsonl(trace);
    const FreezeTrace again = parse_freeze_trace(text, "run.jsonl");
    for (const auto& [name, value] : std::get<SignalsEvent>(again.events.at(0).what).signals) {
      ASSERT_EQ(std::bit_cast<std::uint64_t>(value),
                std::bit_cast<std::uint64_t>(event.signals.at(name)))
          << name;
    }
    ASSERT_EQ(to_jsonl(again), text);
  }
}

TEST(FreezeTrace, KeepsTheLargestIntegers) {
  constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();
  FreezeTrace trace;
  trace.blocks = {"all"};
  trace.steps = kLargest / 2;
  trace.batch_size = std::numeric_limits<int>::max();
  trace.events = {{0, TransitionEvent{Duration{kLargest}, Duration{kLargest}, Duration{kLargest},
                                      Bytes{kLargest}}},
                  {kLargest / 2, CostEvent{kLargest / 2, kLargest, Duration{kLargest}}}};
  EXPECT_EQ(parse_freeze_trace(to_jsonl(trace), "run.jsonl"), trace);
}

TEST(FreezeTrace, GoesThroughAFile) {
  const std::filesystem::path path =
      std::filesystem::path(testing::TempDir()) / "frazil_freeze_trace_test.jsonl";
  write_freeze_trace(make_trace(), path);
  EXPECT_EQ(read_freeze_trace(path), make_trace());
  std::filesystem::remove(path);
  EXPECT_THROW(read_freeze_trace(path), InputError);
}

constexpr const char* kHeader =
    R"({"format":"frazil.freeze_trace","version":1,"model_hash":"m","blocks":["a","b","c"],)"
    R"("steps":9,"batch_size":4,"provenance":{}})"
    "\n";

TEST(FreezeTrace, CountsExtensionsAndKeepsThemOut) {
  const std::string text = std::string(kHeader) + R"({"step":1,"kind":"x-weather","rain":[1,2]})"
                                                  "\n"
                                                  R"({"step":1,"kind":"mask","mask":"001"})"
                                                  "\n"
                                                  R"({"kind":"x-","step":2})"
                                                  "\n";
  const FreezeTrace trace = parse_freeze_trace(text, "run.jsonl");
  EXPECT_EQ(trace.skipped_extensions, 2);
  EXPECT_EQ(trace.events,
            (std::vector<FreezeEvent>{{1, MaskEvent{FreezeMask::frozen_prefix(3, BlockId{1})}}}));
}

// The header does not count these events, so a reader that leaves all extensions out still takes
// the file for whole.
TEST(FreezeTrace, DoesNotAnnounceWhatBecameOfTheCache) {
  std::string text = to_jsonl(make_trace());
  const std::string counted = "\"events\":" + std::to_string(make_trace().events.size() - 2) + ",";
  EXPECT_NE(text.substr(0, text.find('\n')).find(counted), std::string::npos) << text;
  for (std::size_t at = 0; (at = text.find("x-cache", at)) != std::string::npos;) {
    text.replace(at, 7, "x-other");
  }
  const FreezeTrace without = parse_freeze_trace(text, "run.jsonl");
  EXPECT_EQ(without.events.size(), make_trace().events.size() - 2);
  EXPECT_EQ(without.skipped_extensions, 2);
}

struct BadTrace {
  std::string text;
  int line;
  const char* message;  // part of the sentence
};

std::string after_header(const std::string& lines) { return kHeader + lines; }

TEST(FreezeTrace, KeepsWhatBecameOfTheProcessesAndDoesNotAnnounceIt) {
  FreezeTrace trace = make_trace();
  const std::size_t counted = trace.events.size() - 2;
  const RecoveryTimes times{true, 4ms, 3us, 2ms, 9ms};
  for (const MembersEvent& event :
       {MembersEvent{MembersChange::kLost, 3, "rank 2 is lost: its process has ended"},
        MembersEvent{MembersChange::kRecovered, 3, "", times},
        MembersEvent{MembersChange::kCame, 4, "rank 2 has come"},
        MembersEvent{MembersChange::kSuspected, 4, "nothing has been heard of rank 1 for 512 ms"},
        MembersEvent{MembersChange::kHeard, 4, "rank 1: heard of again after 700 ms"}}) {
    trace.events.push_back({31, event});
  }
  const std::string text = to_jsonl(trace);
  EXPECT_NE(text.find(R"({"step":31,"kind":"x-members","event":"recovered","devices":3,"note":"",)"
                      R"("plan_ready":true,"detection_ns":4000000,"plan_ns":3000,)"
                      R"("transfer_ns":2000000,"first_step_ns":9000000})"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("\"events\":" + std::to_string(counted) + ","), std::string::npos) << text;
  EXPECT_EQ(parse_freeze_trace(text, "run.jsonl"), trace);
}

TEST(FreezeTrace, RefusesBadTracesWithTheirLine) {
  const std::string mask = R"({"step":5,"kind":"mask","mask":"001"})"
                           "\n";
  const BadTrace cases[] = {
      {"", 1, "run.jsonl:1"},
      {"[]\n", 1, "object"},
      {R"({"format":"frazil.plan","version":1})", 1, "frazil.freeze_trace"},
      {R"({"format":"frazil.freeze_trace","version":2})", 1, "version"},
      {R"({"format":"frazil.freeze_trace","version":1})", 1, "model_hash"},
      {R"({"format":"frazil.freeze_trace","version":1,"model_hash":"m","blocks":[1],"steps":9,)"
       R"("batch_size":4,"provenance":{}})",
       1, "blocks"},
      {R"({"format":"frazil.freeze_trace","version":1,"model_hash":"m","blocks":[],"steps":-9,)"
       R"("batch_size":4,"provenance":{}})",
       1, "-9"},
      {R"({"format":"frazil.freeze_trace","version":1,"model_hash":"m","blocks":[],"steps":9,)"
       R"("batch_size":4,"provenance":{},"colour":"red"})",
       1, "colour"},
      {after_header("\n"), 2, "run.jsonl:2"},
      {after_header("{\"step\":5,\n\"kind\":\"x-\"}"), 2, "run.jsonl:2"},
      {after_header(mask + R"({"step":5,"kind":"mask","mask":"00)"), 3, "run.jsonl:3"},
      {after_header(R"({"kind":"mask","mask":"001"})"), 2, "step"},
      {after_header(R"({"step":5,"mask":"001"})"), 2, "kind"},
      {after_header(R"({"step":-1,"kind":"mask","mask":"001"})"), 2, "-1"},
      {after_header(R"({"step":1.5,"kind":"mask","mask":"001"})"), 2, "1.5"},
      {after_header(R"({"step":5000000000000000000,"kind":"x-"})"), 2, "5000000000000000000"},
      {after_header(mask + R"({"step":4,"kind":"mask","mask":"001"})"), 3, "a step not before 5"},
      {after_header(mask + R"({"step":4,"kind":"x-"})"), 3, "a step not before 5"},
      {after_header(R"({"step":5,"kind":"masks","mask":"001"})"), 2, "a kind of x-"},
      {after_header(R"({"step":5,"kind":7,"mask":"001"})"), 2, "kind"},
      {after_header(R"({"step":5,"kind":"mask","mask":"0001"})"), 2, "a mask of 3 blocks"},
      {after_header(R"({"step":5,"kind":"mask","mask":"000"})"), 2,
       "found mask \"000\" at $.mask, expected"},
      {after_header(R"({"step":5,"kind":"mask","mask":1})"), 2, "mask"},
      {after_header(R"({"step":5,"kind":"mask","mask":"001","why":""})"), 2, "why"},
      {after_header(R"({"step":5,"step":5,"kind":"mask","mask":"001"})"), 2, "step"},
      {after_header(R"({"step":5,"kind":"plan","plan":"p","summary":""})"), 2, "predicted_step_ns"},
      {after_header(R"({"step":5,"kind":"cost","steps":1,"samples":1,"measured_ns":0.5})"), 2,
       "measured_ns"},
      {after_header(R"({"step":5,"kind":"cost","steps":1,"samples":-1,"measured_ns":5})"), 2,
       "samples"},
      {after_header(R"({"step":5,"kind":"transition","plan_time_ns":0,"move_time_ns":0,)"
                    R"("start_time_ns":0,"moved_bytes":9223372036854775808})"),
       2, "9223372036854775808"},
      {after_header(R"({"step":5,"kind":"eval","epoch":0,"train_loss":1,"loss":NaN,"accuracy":1})"),
       2, "run.jsonl:2"},
      {after_header(R"({"step":5,"kind":"eval","epoch":0,"train_loss":1,"loss":1,"accuracy":1.5})"),
       2, "accuracy"},
      {after_header(R"({"step":5,"kind":"x-cache","event":"lost"})"), 2,
       R"(found `"lost"` at $.event, expected declined, begun,)"},
      {after_header(R"({"step":5,"kind":"x-cache","event":"read","layers":-1})"), 2, "layers"},
      {after_header(R"({"step":5,"kind":"x-members","event":"gone"})"), 2,
       R"(found `"gone"` at $.event, expected lost, recovered, came, suspected or heard)"},
      {after_header(R"({"step":5,"kind":"x-members","event":"recovered","devices":1,"note":""})"),
       2, "plan_ready"},
      {after_header(R"({"step":5,"kind":"eval","epoch":0,"train_loss":1,"loss":1,"accuracy":1,)"
                    R"("validation_loss":1})"),
       2, "validation_accuracy"},
      {after_header(R"({"step":5,"kind":"eval","epoch":0,"train_loss":1,"loss":1,"accuracy":1,)"
                    R"("validation_accuracy":1})"),
       2, "validation_accuracy"},
      {after_header(R"({"step":5,"kind":"eval","epoch":0,"train_loss":1,"loss":1,)"
                    R"("validation_loss":1,"validation_accuracy":1})"),
       2, "validation_accuracy"},
      {after_header(R"({"step":5,"kind":"signals","signals":{"loss":1e999}})"), 2, "run.jsonl:2"},
      {after_header(R"({"step":5,"kind":"signals","signals":{"loss":"low"}})"), 2, "loss"},
  };
  for (const BadTrace& bad : cases) {
    SCOPED_TRACE(bad.text);
    try {
      parse_freeze_trace(bad.text, "run.jsonl");
      ADD_FAILURE() << "read";
    } catch (const InputError& error) {
      EXPECT_EQ(error.file(), "run.jsonl");
      EXPECT_EQ(error.line(), bad.line) << error.what();
      EXPECT_NE(std::string(error.what()).find(bad.message), std::string::npos) << error.what();
    }
  }
}

TEST(FreezeTrace, NeverWritesWhatCannotBeRead) {
  const auto with_event = [](const FreezeEvent& event) {
    FreezeTrace trace;
    trace.blocks = {"a", "b"};
    trace.events = {event};
    return trace;
  };
  const double not_a_number = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_THROW(to_jsonl(with_event({0, EvalEvent{0, not_a_number, 0, 0}})), InputError);
  EXPECT_THROW(to_jsonl(with_event({0, EvalEvent{0, 0, infinity, 0}})), InputError);
  EXPECT_THROW(to_jsonl(with_event({0, EvalEvent{0, 0, 0, not_a_number}})), InputError);
  EXPECT_THROW(to_jsonl(with_event({0, EvalEvent{0, 0, 0, 0, PartScore{infinity, 0}}})),
               InputError);
  EXPECT_THROW(to_jsonl(with_event({0, EvalEvent{0, 0, 0, 0, PartScore{0, 1.5}}})),
               std::logic_error);
  EXPECT_THROW(to_jsonl(with_event({0, SignalsEvent{{{"loss", -infinity}}}})), InputError);
  EXPECT_THROW(to_jsonl(with_event({0, PlanEvent{"\xff", "", 0ns}})), InputError);
  EXPECT_THROW(to_jsonl(with_event({0, StepEvent{not_a_number, 1, 1ns}})), InputError);
  EXPECT_THROW(to_jsonl(with_event({0, EvalEvent{0, 0, 0, 1.5}})), std::logic_error);
  EXPECT_THROW(to_jsonl(with_event({0, StepEvent{0, -1, 1ns}})), std::logic_error);
  EXPECT_THROW(to_jsonl(with_event({0, CheckpointEvent{-1ns}})), std::logic_error);
  EXPECT_THROW(to_jsonl(with_event({0, CacheEvent{CacheChange::kRead, 1, -1, {}, {}}})),
               std::logic_error);
  EXPECT_THROW(to_jsonl(with_event({3, CheckpointEvent{1ns, 4}})), std::logic_error);
  EXPECT_THROW(to_jsonl(with_event({0, CostEvent{1, 1, -1ns}})), std::logic_error);
  EXPECT_THROW(to_jsonl(with_event({0, MaskEvent{FreezeMask::all_active(3)}})), std::logic_error);
  EXPECT_THROW(to_jsonl(with_event({-1, CostEvent{}})), std::logic_error);
  FreezeTrace backwards = with_event({5, CostEvent{}});
  backwards.events.push_back({4, CostEvent{}});
  EXPECT_THROW(to_jsonl(backwards), std::logic_error);
}

}  // namespace
}  // namespace frazil
