// Tests that subcommands tell a newcomer what came of a flag, or of what a file holds.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "planner/interop/pytorch_menu.h"
#include "planner/plan/schedule_facts.h"
#include "profiles/json.h"
#include "profiles/model_profile_json.h"
#include "profiles/text_file.h"
#include "tests/support/program_folder.h"
#include "tests/support/sample_models.h"
#include "tests/support/write_cluster.h"
#include "tests/traces/kineto/kineto_text.h"

namespace frazil {
namespace {

using std::chrono::microseconds;

class ToldOutcomes : public testing::Test {
 protected:
  void SetUp() override {
    write_model_profile(make_chain(4, microseconds(10), microseconds(10), microseconds(10)),
                        path("model.json"));
    write_cluster(make_uniform_cluster(2, Bytes{1'000'000}, {}), path("roomy.json"));
    write_cluster(make_uniform_cluster(2, Bytes{10}, {}), path("tight.json"));
  }

  std::string path(const std::string& name) const { return folder_.path(name); }
  Outcome run(const std::string& verb, const std::string& arguments) const {
    return folder_.run(verb, arguments);
  }
  Outcome plan(const std::string& flags) const {
    return run("plan", "--profile model.json --batch 8 --micro-batch 1 " + flags);
  }
  static void expect_one_sentence(const Outcome& outcome, int code, const std::string& words) {
    EXPECT_EQ(outcome.code, code) << outcome.err;
    EXPECT_NE(outcome.err.find(words), std::string::npos) << outcome.err;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  }

 private:
  ProgramFolder folder_{testing::UnitTest::GetInstance()->current_test_info()->name()};
};

TEST_F(ToldOutcomes, APlanThatDoesNotFitIsNotWrittenAndTheSentenceSaysSo) {
  for (const char* const planner : {"", "--planner torchgpipe "}) {
    SCOPED_TRACE(planner);
    const std::string flags = std::string("--cluster tight.json ") + planner;
    expect_one_sentence(plan(flags + "--out new.json"), 3, "; --out new.json is not written\n");
    EXPECT_FALSE(std::filesystem::exists(path("new.json")));
    const Outcome outcome = plan(flags);
    EXPECT_EQ(outcome.code, 3);
    EXPECT_EQ(outcome.err.find("--out"), std::string::npos) << outcome.err;
  }
  EXPECT_EQ(plan("--cluster roomy.json --planner torchgpipe --out new.json").code, 0);
  EXPECT_TRUE(std::filesystem::exists(path("new.json")));
}

// A stage of varuna holds at most eight micro-batches, of which one has been run forward again.
TEST_F(ToldOutcomes, AScheduleThatRecomputesIsJudgedByTheInputsThatItKeeps) {
  const std::string what_if =
      "--stages 4 --micro-batches 8 --forward 1ms --backward 2ms --activation 10MiB ";
  const std::string varuna = what_if + "--schedule varuna ";
  const Outcome full = run("simulate", varuna + "--memory-limit 31MiB");
  expect_one_sentence(full, 3,
                      "needs 80.00 MiB on device 0, limit 31.00 MiB, if stages kept what varuna "
                      "recomputes; --stage-input says what they keep\n");
  EXPECT_NE(full.out.find("if stages kept what varuna recomputes"), std::string::npos) << full.out;
  const Outcome told = run("simulate", varuna + "--memory-limit 31MiB --stage-input 3MiB");
  EXPECT_EQ(told.code, 0) << told.err;
  EXPECT_NE(told.out.find("fits into 31.00 MiB"), std::string::npos) << told.out;
  expect_one_sentence(run("simulate", varuna + "--memory-limit 30MiB --stage-input 3MiB"), 3,
                      "needs 31.00 MiB on device 0, limit 30.00 MiB\n");
  const std::string compared = "--compare --memory-limit 31MiB ";
  EXPECT_NE(run("simulate", what_if + compared).out.find("if stages kept what varuna recomputes"),
            std::string::npos);
  const std::string with_input = run("simulate", what_if + compared + "--stage-input 3MiB").out;
  EXPECT_EQ(with_input.find("varuna               excluded"), std::string::npos) << with_input;
  expect_one_sentence(run("simulate", what_if + "--schedule gpipe --stage-input 3MiB"), 2,
                      "expected varuna, or --compare\n");
  expect_one_sentence(run("simulate", varuna + "--stage-input 11MiB"), 2,
                      "at most the 10.00 MiB of --activation");
}

TEST_F(ToldOutcomes, TheGroupOfPytorchsSchedulesIsThatWhichItsRuntimeTakes) {
  std::string names;
  for (const ScheduleKind kind : synchronous_schedules()) {
    if (!runs_in_pytorch(facts_of(kind))) continue;
    names += (names.empty() ? "" : ",") + std::string(schedule_name(kind));
  }
  EXPECT_NE(names.find("dualpipev"), std::string::npos);
  EXPECT_EQ(names.find("varuna"), std::string::npos);
  const std::string question = "--cluster roomy.json --json --schedules ";
  const Outcome grouped = plan(question + "PyTorch");
  ASSERT_EQ(grouped.code, 0) << grouped.err;
  EXPECT_EQ(grouped.out, plan(question + names).out);
  EXPECT_EQ(plan(question + "pytorch,search").code, 0);
  for (const std::string list : {"pytorch,gpipe", "gpipe,pytorch"}) {
    expect_one_sentence(plan("--cluster roomy.json --schedules " + list), 2,
                        "found --schedules " + list + ", expected each schedule once\n");
  }
}

TEST_F(ToldOutcomes, AnExportAnswersInJsonToo) {
  const std::string question = "--to svg --stages 2 --micro-batches 2 --schedule gpipe --json ";
  const Outcome outcome = run("export", question + "--out step.svg");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  JsonFields answer(parse_json(outcome.out, "answer"));
  EXPECT_EQ(answer.required("files").items()[0].text(), "step.svg");
  EXPECT_EQ(answer.required("assumed_action_ns").integer(1, kLargestQuantity), 1'000'000);
  const Outcome refused = run("export", question + "--out gone/step.svg");
  EXPECT_EQ(refused.code, 2);
  JsonFields error(parse_json(refused.out, "answer"));
  JsonFields told(error.required("error"));
  EXPECT_EQ(told.required("code").integer(0, 9), 2);
}

// Steps of 100, 100, 110 and 120 us behind the first, which is dropped.
TEST_F(ToldOutcomes, AnImportSaysHowUnsteadyTheStepsWere) {
  KinetoText text;
  std::int64_t start = 0;
  std::int64_t number = 0;
  for (const std::int64_t time : {900, 100, 120, 100, 110}) {
    text.range("ProfilerStep#" + std::to_string(number), 1, start, start + 1'000'000)
        .range("layer:a", 1, start + 10, start + 10 + 1000 * time)
        .op("aten::linear", 1, start + 20, start + 30, number);
    start += 2'000'000;
    ++number;
  }
  write_text_file(path("trace.json"), text.text());
  const std::string question = "kineto trace.json --micro-batch-size 1 --out profile.json";
  const Outcome outcome = run("import", question);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("median of 4 steps (1 dropped as warm-up); the middle half of the "
                             "steps spreads by 9.52 %, more than the noise that frazil plan takes "
                             "for granted (--noise, default 1 %)\n"),
            std::string::npos)
      << outcome.out;
  JsonFields answer(parse_json(run("import", question + " --json").out, "answer"));
  EXPECT_NEAR(answer.required("step_spread").real(0, 1), 1 / 10.5, 1e-3);
}

}  // namespace
}  // namespace frazil
