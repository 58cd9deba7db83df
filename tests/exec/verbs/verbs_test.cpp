// The programs that train and measure run as processes: these tests check answers and exit codes,
// and that a failure writes nothing.

#include <gtest/gtest.h>

#include <cstdlib>
#include <sstream>

#include "planner/plan/plan_json.h"
#include "profiles/json.h"
#include "profiles/model_profile_json.h"
#include "profiles/text_file.h"
#include "tests/exec/support/tiny_run.h"
#include "tests/support/program_folder.h"
#include "tests/support/write_cluster.h"
#include "traces/freeze_trace.h"

namespace frazil {
namespace {

// Each test has a folder of its own with what a tiny run needs in it, good and bad.
class TrainingVerbs : public testing::Test {
 protected:
  void SetUp() override {
    const RunConfig config = tiny_config();
    const ModelProfile profile = tiny_profile(config);
    write_text_file(path("run.json"), to_json(config));
    write_text_file(path("broken.json"), "{\"format\": \"frazil.run\", ");
    write_model_profile(profile, path("model.json"));
    write_cluster(tiny_cluster(kAmpleMemory), path("cluster.json"));
    write_cluster(tiny_cluster(Bytes{10'000}), path("tight.json"));
    RunConfig wider = config;
    vit_of(wider).dim = 64;
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
    Plan elsewhere = make_plan(profile);
    elsewhere.pipelines[0].stages[1].devices = {DeviceId{2}};
    write_plan(elsewhere, path("elsewhere-plan.json"));
    write_lists({"0F0 0B0 0F1 0B1", "1F1 1B1 1F0 1B0"}, make_plan(profile), "waiting-plan.json");
    write_lists({"0F1 0F0 0B0 0B1", "1F0 1F1 1B1 1B0"}, make_plan(profile), "crossing-plan.json");
    RunConfig impatient = config;
    impatient.deadline_seconds = 1e-9;
    write_text_file(path("impatient.json"), to_json(impatient));
    RunConfig ordered = config;
    ordered.message_order = MessageOrder::kAsSent;
    write_text_file(path("ordered.json"), to_json(ordered));
  }

  void write_lists(const std::vector<std::string>& lists, Plan plan, const std::string& name) {
    ExplicitSchedule schedule;
    for (const std::string& list : lists) {
      std::istringstream words(list);
      std::vector<Action>& actions = schedule.devices.emplace_back();
      for (std::string word; words >> word;) actions.push_back(parse_action(word));
    }
    plan.schedule = schedule;
    write_plan(plan, path(name));
  }

  static Plan make_plan(const ModelProfile& profile) {
    Plan plan = make_small_plan(profile, {.micro_batches = 2, .cuts = {{4}}, .owned = {2}});
    plan.batch_size = 8;
    plan.micro_batch_size = 4;
    return plan;
  }

  std::string path(const std::string& name) const { return folder_.path(name); }

  // Expects a failure: this exit code, one line that begins with the subcommand, no answer, no new
  // file.
  void expect_refusal(const std::string& verb, const std::string& arguments, int code,
                      const std::string& part = "") const {
    SCOPED_TRACE(verb + " " + arguments);
    const std::size_t files = folder_.count_files();
    const Outcome outcome = folder_.run(verb, arguments);
    EXPECT_EQ(outcome.code, code);
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(outcome.err.find("frazil " + verb + ": "), 0U) << outcome.err;
    EXPECT_EQ(outcome.err.find('\n') + 1, outcome.err.size()) << outcome.err;
    EXPECT_NE(outcome.err.find(part), std::string::npos) << outcome.err;
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

TEST_F(TrainingVerbs, RefuseAnUnknownKindOfDevice) {
  for (const auto& [verb, arguments] :
       {std::pair("profile", kProfile), {"train", kTrain}, {"verify", kVerify}}) {
    expect_refusal(verb, arguments + " --device gpu", 2);
    EXPECT_NE(folder_.run(verb, arguments + " --device gpu").err.find("expected cpu or cuda"),
              std::string::npos);
  }
}

TEST_F(TrainingVerbs, RefuseAListOfGpusThatNamesNone) {
  for (const auto& [verb, arguments] :
       {std::pair("profile", kProfile), {"train", kTrain}, {"verify", kVerify}}) {
    for (const auto& [flags, sentence] :
         {std::pair("--gpus 0", "found --gpus without --device cuda, expected both"),
          {"--device cuda --gpus 0,1,0", "found --gpus 0,1,0, expected each number once"},
          {"--device cuda --gpus 0,x", "--gpus"}}) {
      expect_refusal(verb, arguments + " " + flags, 2);
      const std::string said = folder_.run(verb, arguments + " " + flags).err;
      EXPECT_NE(said.find(sentence), std::string::npos) << said;
    }
  }
}

TEST_F(TrainingVerbs, VerifyNamesTheWholeOfAPlantedSlowdownThatItCannotRead) {
  for (const std::string text : {"3:1.5", "3", "3:", ":20", "8:20", "x:20", "3:0", "3:1001"}) {
    const std::string said = folder_.run("verify", kVerify + "--plant " + text).err;
    EXPECT_NE(said.find("found --plant " + text + ", expected LAYER:PERCENT, such as 3:20: the "),
              std::string::npos)
        << said;
  }
}

// The plug-in of the build is there in some builds alone.
TEST_F(TrainingVerbs, WithoutAGpuDeviceCudaIsRefused) {
  if (std::filesystem::exists("/dev/nvidiactl")) GTEST_SKIP() << "this machine has a GPU";
  const bool is_built = std::filesystem::exists(FRAZIL_PROGRAM_FOLDER "/../lib/libfrazil_cuda.so");
  for (const auto& [verb, arguments] :
       {std::pair("profile", kProfile), {"train", kTrain}, {"verify", kVerify}}) {
    expect_refusal(verb, arguments + " --device cuda", 2);
    const std::string said = folder_.run(verb, arguments + " --device cuda").err;
    const std::string begin = std::string("frazil ") + verb + ": --device cuda: found no ";
    if (is_built) {
      EXPECT_TRUE(said.starts_with(begin + "working driver (CUDA driver version") ||
                  said.starts_with(begin + "GPU, expected a GPU"))
          << said;
    } else {
      EXPECT_TRUE(said.starts_with(begin + "plug-in ")) << said;
    }
  }
}

TEST_F(TrainingVerbs, EndWithThreeWhenThePlanCannotRun) {
  expect_refusal("train", "--run run.json --profile model.json --cluster tight.json --out out", 3);
  expect_refusal("train", kTrain + "--plan offload-plan.json", 3);
  expect_refusal("verify", "--run run.json --cluster cluster.json --plan offload-plan.json", 3);
}

// `train` says before the first step what is wrong with a plan, a cluster or a run.
TEST_F(TrainingVerbs, TrainRefusesInOneSentenceWhatCannotBeRun) {
  struct Case {
    std::string arguments;
    int code;
    std::string part;
  };
  const std::string tight = "--run run.json --profile model.json --cluster tight.json --out out ";
  const std::string ordered = "--run ordered.json --profile model.json --cluster cluster.json ";
  const std::vector<Case> cases = {
      {kTrain + "--plan wider-plan.json", 2, "the hash of model"},
      {kTrain + "--plan elsewhere-plan.json", 2,
       "found device 2 at $.pipelines[0].stages[1].devices[0], expected a device from 0 to 1"},
      {tight + "--plan plan.json", 3, " of memory and has 9.77 KiB, at its peak for parameters "},
      {kTrain + "--plan waiting-plan.json", 3,
       "the lists of the devices wait for each other: device 0 stands at 0B0 and waits for "
       "0RECV_B0, device 1 stands at 1F1 and waits for 1RECV_F1"},
      {ordered + "--plan waiting-plan.json --out out", 3,
       "the lists of the devices wait for each other: device 0 stands at 0B0"},
  };
  for (const Case& bad : cases) expect_refusal("train", bad.arguments, bad.code, bad.part);
}

TEST_F(TrainingVerbs, AWaitOverTheDeadlineEndsTrainingWithWhoWaitsForWhat) {
  expect_refusal("train",
                 "--run impatient.json --profile model.json --cluster cluster.json "
                 "--plan plan.json --quiet",
                 6, " waited 1 ns for the ");
}

// The run has begun, so its log stays and says how far it came.
TEST_F(TrainingVerbs, ARunThatFailsInAStepLeavesItsLogAlone) {
  const std::size_t files = folder_.count_files();
  // On a busy machine layers come too late for the first step, and the run has not begun.
  for (int trial = 0; trial < 20 && folder_.count_files() == files; ++trial) {
    const Outcome failed =
        folder_.run("train",
                    "--run impatient.json --profile model.json --cluster cluster.json "
                    "--plan plan.json --out out --quiet");
    EXPECT_EQ(failed.code, 6) << failed.err;
  }
  EXPECT_EQ(folder_.count_files(), files + 1);
  const FreezeTrace log = read_freeze_trace(path("out/events.jsonl"));
  ASSERT_GE(log.events.size(), 3U);
  EXPECT_TRUE(std::holds_alternative<TransitionEvent>(log.events[2].what));
  // Steps come through where whatever a device needs happens to be there each time it looks.
  for (std::size_t e = 3; e < log.events.size(); ++e) {
    EXPECT_TRUE(std::holds_alternative<StepEvent>(log.events[e].what)) << "event " << e;
  }
}

TEST_F(TrainingVerbs, TrainReplaysTheTraceThatFreezeNames) {
  const auto train = [&](const std::string& flags) {
    const Outcome trained = folder_.run("train", kTrain + "--force --quiet --json " + flags);
    EXPECT_EQ(trained.code, 0) << trained.err;
    JsonFields answer(parse_json(trained.out, "answer"));
    return answer.required("state_hash").text();
  };
  write_text_file(path("random.json"),
                  R"({"policy": {"kind": "random", "active_layers": 1, "interval_steps": 2}})");
  const std::string hash = train("--freeze random.json");
  std::filesystem::rename(path("out/events.jsonl"), path("events.jsonl"));
  write_text_file(path("replay.json"), R"({"policy": {"kind": "trace", "path": "events.jsonl"}})");
  EXPECT_EQ(train("--freeze replay.json"), hash);
  EXPECT_NE(train("--no-freeze"), hash);
  expect_refusal("train", kTrain + "--freeze replay.json --no-freeze", 2, "--no-freeze");
  write_text_file(path("replay.json"),
                  R"({"policy": {"kind": "trace", "path": "out/events.jsonl"}})");
  expect_refusal("train", kTrain + "--freeze replay.json", 2, "events.jsonl");
  write_text_file(path("replay.json"), R"({"policy": {"kind": "plastic"}})");
  expect_refusal("train", kTrain + "--freeze replay.json", 2, "replay.json:1: found ");
}

TEST_F(TrainingVerbs, BothOrdersOfMessagesTrainToTheSameWeights) {
  for (const std::string plan : {"plan.json", "crossing-plan.json"}) {
    std::vector<std::string> hashes;
    for (const std::string run : {"run.json", "ordered.json"}) {
      const Outcome trained =
          folder_.run("train",
                      "--profile model.json --cluster cluster.json --no-freeze --quiet "
                      "--json --plan " +
                          plan + " --run " + run);
      ASSERT_EQ(trained.code, 0) << trained.err;
      JsonFields answer(parse_json(trained.out, "answer"));
      hashes.push_back(answer.required("state_hash").text());
    }
    EXPECT_EQ(hashes[0], hashes[1]) << plan;
  }
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
  const std::vector<JsonCursor> phases = answer.required("phases").items();
  EXPECT_EQ(phases.size(), 3U);
  for (const JsonCursor& phase : phases) {
    JsonFields memory(JsonFields(phase).required("memory"));
    EXPECT_EQ(memory.required("devices").items().size(), 2U);
  }
  EXPECT_TRUE(std::filesystem::exists(path("out/trace.jsonl")));
  EXPECT_TRUE(std::filesystem::exists(path("out/phase-2/plan.json")));
}

TEST_F(TrainingVerbs, ARunInBf16TakesAProfileAndPlansInBf16) {
  RunConfig config = tiny_config();
  config.reduction = ReductionMode::kFast;
  write_text_file(path("fast.json"), to_json(config));
  config.precision = Precision::kBf16;
  write_text_file(path("narrow.json"), to_json(config));
  const std::string rest = " --cluster cluster.json --out out --quiet ";
  expect_refusal("train", "--run narrow.json --profile model.json" + rest, 2,
                 "model.json: found a profile in fp32, expected one in bf16");
  const Outcome profiled = folder_.run(
      "profile",
      "--run fast.json --precision bf16 --out m.json --devices 2 --rounds 1 --steps 2 --quiet");
  ASSERT_EQ(profiled.code, 0) << profiled.err;
  EXPECT_NE(profiled.out.find("the layers computed in bf16\n"), std::string::npos);
  EXPECT_EQ(read_model_profile(path("m.json")).precision, Precision::kBf16);
  expect_refusal("train", "--run fast.json --profile m.json" + rest, 2,
                 "m.json: found a profile in bf16, expected one in fp32");
  expect_refusal("train", "--run narrow.json --profile m.json --plan plan.json" + rest, 2,
                 "plan.json:4: found a plan by a profile of ");
  const Outcome trained = folder_.run("train", "--run narrow.json --profile m.json" + rest);
  EXPECT_EQ(trained.code, 0) << trained.err;
  expect_refusal("profile", "--run fast.json --precision half --out n.json", 2, "--precision half");
}

TEST_F(TrainingVerbs, TrainAnswersAndEndsWithTwoWhereItsTraceCannotBeWritten) {
  std::filesystem::create_directories(path("out/trace.jsonl"));
  const Outcome outcome = folder_.run("train", kTrain + "--steps 1 --quiet");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("out/trace.jsonl: found a folder"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.out.find("test accuracy "), std::string::npos) << outcome.out;
  EXPECT_FALSE(std::filesystem::exists(path("out/phase-0/plan.json")));
}

// A broken rule is told of before the first step, and is no reason to end.
TEST_F(TrainingVerbs, SayWhereTheMachineBreaksARule) {
  for (const auto& [verb, arguments] :
       {std::pair<std::string, std::string>("profile", kProfile + "--devices 2 --rounds 1"),
        {"train", kTrain + "--steps 1"},
        {"verify", kVerify + "--blocks 2 --steps 1"}}) {
    SCOPED_TRACE(verb);
    ::setenv("LD_PRELOAD", FRAZIL_UNEQUAL_TENSORS, 1);
    const Outcome broken = folder_.run(verb, arguments);
    ::unsetenv("LD_PRELOAD");
    EXPECT_EQ(broken.err.find("frazil " + verb +
                              ": a row of a linear layer (64 to 10 features) depends on its "
                              "position on this machine\n"),
              0U)
        << broken.err;
    EXPECT_NE(broken.out, "") << broken.err;
    const Outcome usual = folder_.run(verb, arguments);
    EXPECT_EQ(usual.err.find("on this machine"), std::string::npos) << usual.err;
  }
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
