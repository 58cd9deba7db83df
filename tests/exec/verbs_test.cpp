// The programs that train and measure, as processes: answers, exit codes, and nothing written on
// failure.

#include <gtest/gtest.h>

#include "planner/plan_json.h"
#include "profiles/cluster_json.h"
#include "profiles/json.h"
#include "profiles/model_profile_json.h"
#include "tests/exec/tiny_run.h"
#include "tests/support/program_folder.h"

namespace frazil {
namespace {

constexpr Bytes kMuch{1 << 30};

// A folder of its own for each test, with what a tiny run needs in it, good and bad.
class TrainingVerbs : public testing::Test {
 protected:
  void SetUp() override {
    const RunConfig config = tiny_config();
    const ModelProfile profile = tiny_profile(config);
    write_text_file(path("run.json"), to_json(config));
    write_text_file(path("broken.json"), "{\"format\": \"frazil.run\", ");
    write_model_profile(profile, path("model.json"));
    write_cluster(tiny_cluster(kMuch), path("cluster.json"));
    write_cluster(tiny_cluster(Bytes{10'000}), path("tight.json"));
    RunConfig wider = config;
    wider.model.dim = 64;
    write_model_profile(tiny_profile(wider), path("wider.json"));
    write_plan(make_plan(profile), path("plan.json"));
    write_plan(make_plan(tiny_profile(wider)), path("wider-plan.json"));
    Plan larger = make_plan(profile);
    larger.batch_size = 16;
    larger.pipelines[0].micro_batches = {{MicroBatchId{0}, MicroBatchId{3}}};
    write_plan(larger, path("larger-plan.json"));
    Plan offload = make_plan(profile);
    offload.pipelines[0].stages[0].memory = MemoryPolicy::kOffload;
    write_plan(offload, path("offload-plan.json"));
  }

  static Plan make_plan(const ModelProfile& profile) {
    Plan plan = make_small_plan(profile, {.micro_batches = 2, .cuts = {{4}}, .owned = {2}});
    plan.batch_size = 8;
    plan.micro_batch_size = 4;
    return plan;
  }

  std::string path(const std::string& name) const { return folder_.path(name); }

  // A failure: this code, one line that begins with the verb, no answer, no new file.
  void expect_refusal(const std::string& verb, const std::string& arguments, int code) const {
    SCOPED_TRACE(verb + " " + arguments);
    const std::size_t files = folder_.count_files();
    const Outcome outcome = folder_.run(verb, arguments);
    EXPECT_EQ(outcome.code, code);
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(outcome.err.find("frazil " + verb + ": "), 0U) << outcome.err;
    EXPECT_EQ(outcome.err.find('\n') + 1, outcome.err.size()) << outcome.err;
    EXPECT_EQ(folder_.count_files(), files);
  }

  ProgramFolder folder_{testing::UnitTest::GetInstance()->current_test_info()->name()};
};

const std::string kTrain = "--run run.json --profile model.json --cluster cluster.json --out out ";
const std::string kVerify = "--run run.json --cluster cluster.json --plan plan.json ";
const std::string kProfile = "--run run.json --out m.json --cluster-out c.json ";

TEST_F(TrainingVerbs, BadUsageEndsWithOneSentenceAndWritesNothing) {
  const std::vector<std::pair<std::string, std::string>> bad = {
      {"profile", "--out m.json"},
      {"profile", "--run absent.json --out m.json"},
      {"profile", "--run broken.json --out m.json"},
      {"profile", kProfile + "--devices 0"},
      {"profile", kProfile + "--micro-batch 4,"},
      {"profile", kProfile + "--memory-limit 3"},
      {"profile", kProfile + "--steps 1"},
      {"profile", kProfile + "extra"},
      {"profile", "--run run.json --out run.json"},
      {"profile", "--run run.json --out m.json --cluster-out ./m.json"},
      {"profile", kProfile + "--micro-batch 4,4"},
      {"train", kTrain + "--plan out/phase-0/plan.json"},
      {"train", "--profile model.json --cluster cluster.json --out out"},
      {"train", "--run run.json --cluster cluster.json --out out"},
      {"train", "--run run.json --profile model.json --out out"},
      {"train", "--run run.json --profile wider.json --cluster cluster.json --out out"},
      {"train", "--run run.json --profile model.json --cluster model.json --out out"},
      {"train", kTrain + "--plan wider-plan.json"},
      {"train", kTrain + "--plan larger-plan.json"},
      {"train", kTrain + "--plan absent.json"},
      {"train", kTrain + "--steps -1"},
      {"train", kTrain + "--seed 1.5"},
      {"verify", "--run run.json --plan plan.json"},
      {"verify", "--run run.json --cluster cluster.json"},
      {"verify", "--run run.json --cluster cluster.json --plan wider-plan.json"},
      {"verify", kVerify + "--plant 3"},
      {"verify", kVerify + "--plant 8:20"},
      {"verify", kVerify + "--plant 3:0"},
      {"verify", kVerify + "--blocks 1"},
  };
  for (const auto& [verb, arguments] : bad) expect_refusal(verb, arguments, 2);
}

TEST_F(TrainingVerbs, EndWithThreeWhenThePlanCannotRun) {
  expect_refusal("train", "--run run.json --profile model.json --cluster tight.json --out out", 3);
  expect_refusal("train", kTrain + "--plan offload-plan.json", 3);
  expect_refusal("verify", "--run run.json --cluster cluster.json --plan offload-plan.json", 3);
}

TEST_F(TrainingVerbs, ProfilePlanAndTrainFitTogether) {
  const Outcome profiled = folder_.run(
      "profile", kProfile + "--devices 2 --rounds 1 --steps 2 --memory-limit 1GiB --quiet");
  ASSERT_EQ(profiled.code, 0) << profiled.err;
  EXPECT_EQ(profiled.err, "");
  EXPECT_NE(profiled.out.find("block1.attention"), std::string::npos);
  const Outcome trained = folder_.run(
      "train", "--run run.json --profile m.json --cluster c.json --out out --quiet --json");
  ASSERT_EQ(trained.code, 0) << trained.err;
  EXPECT_EQ(trained.err, "");
  JsonFields answer(parse_json(trained.out, "answer"));
  EXPECT_EQ(answer.required("phases").items().size(), 3U);
  EXPECT_TRUE(std::filesystem::exists(path("out/trace.jsonl")));
  EXPECT_TRUE(std::filesystem::exists(path("out/phase-2/plan.json")));
}

TEST_F(TrainingVerbs, VerifyEndsByItsVerdict) {
  const Outcome outcome = folder_.run("verify", kVerify + "--blocks 2 --steps 1 --quiet --json");
  EXPECT_EQ(outcome.err, "");
  JsonFields answer(parse_json(outcome.out, "answer"));
  const std::string verdict = answer.required("verdict").text();
  const std::map<std::string, int> codes = {{"PASS", 0}, {"FAIL", 4}, {"INCONCLUSIVE", 5}};
  ASSERT_TRUE(codes.contains(verdict)) << verdict;
  EXPECT_EQ(outcome.code, codes.at(verdict));
}

}  // namespace
}  // namespace frazil
