// The programs that train and measure run as processes. These tests read what they say of plans,
// data and machines.

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <thread>

#include "planner/plan/plan_json.h"
#include "planner/prediction/simulate_plan.h"
#include "profiles/cluster_json.h"
#include "profiles/json.h"
#include "profiles/model_profile_json.h"
#include "profiles/text_file.h"
#include "tests/exec/support/tiny_run.h"
#include "tests/support/program_folder.h"
#include "tests/support/write_cluster.h"

namespace frazil {
namespace {

class ToldVerbs : public testing::Test {
 protected:
  void SetUp() override {
    const RunConfig config = tiny_config();
    profile_ = tiny_profile(config);
    write_text_file(path("run.json"), to_json(config));
    write_model_profile(profile_, path("model.json"));
    write_cluster(tiny_cluster(kAmpleMemory), path("cluster.json"));
    plan_ = make_small_plan(profile_, {.micro_batches = 2, .cuts = {{4}}, .owned = {2}});
    plan_.batch_size = 8;
    plan_.micro_batch_size = 4;
    write_plan(plan_, path("plan.json"));
  }

  std::string path(const std::string& name) const { return folder_.path(name); }

  // Expects this exit code, one line on standard error that begins with `begin`, and no answer.
  void expect_refusal(const std::string& verb, const std::string& arguments, int code,
                      const std::string& begin) const {
    SCOPED_TRACE(verb + " " + arguments);
    const Outcome outcome = folder_.run(verb, arguments);
    EXPECT_EQ(outcome.code, code);
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(outcome.err.find("frazil " + verb + ": " + begin), 0U) << outcome.err;
    EXPECT_EQ(outcome.err.find('\n') + 1, outcome.err.size()) << outcome.err;
  }

  ModelProfile profile_;
  Plan plan_;
  ProgramFolder folder_{testing::UnitTest::GetInstance()->current_test_info()->name()};
};

const std::string kQuietTrain =
    "--run run.json --profile model.json --cluster cluster.json --quiet ";

TEST_F(ToldVerbs, TrainRefusesNcclWithoutGpus) {
  expect_refusal("train", kQuietTrain + "--procs 2 --transport nccl", 2,
                 "command line: found --transport nccl without --device cuda, expected both");
}

TEST_F(ToldVerbs, TrainRefusesABatchOfMoreSamplesThanThereAre) {
  RunConfig config = tiny_config();
  config.batch_size = 52;
  write_text_file(path("large.json"), to_json(config));
  expect_refusal("train", "--run large.json --profile model.json --cluster cluster.json --out out",
                 2,
                 "large.json: found a batch of 52 samples, expected at most the 48 there are to "
                 "train on\n");
  EXPECT_FALSE(std::filesystem::exists(path("out")));
  config.batch_size = 48;
  write_text_file(path("whole.json"), to_json(config));
  const Outcome whole = folder_.run(
      "train", "--run whole.json --profile model.json --cluster cluster.json --steps 1 --quiet");
  EXPECT_EQ(whole.code, 0) << whole.err;
}

TEST_F(ToldVerbs, APlanThatNeedsTooMuchMemoryIsRefusedByTheNameOfItsFile) {
  // Parameters, gradients and optimizer state of the first stage alone take more.
  write_cluster(tiny_cluster(Bytes{10'000}), path("tight.json"));
  const std::string begin = "plan.json: the plan does not fit: device";
  expect_refusal("train",
                 "--run run.json --profile model.json --cluster tight.json --plan plan.json", 3,
                 begin);
  expect_refusal("verify", "--run run.json --cluster tight.json --plan plan.json", 3, begin);
  // The refusal comes before any step, for no step of this run can succeed.
  RunConfig impatient = read_run_config(path("run.json"));
  impatient.deadline_seconds = 1e-9;
  write_text_file(path("impatient.json"), to_json(impatient));
  expect_refusal("verify", "--run impatient.json --cluster tight.json --plan plan.json", 3, begin);
}

// verify and the simulator count with the same stashes, those of the layers themselves.
TEST_F(ToldVerbs, VerifyRefusesWhatTheProfileOfTheSameMachineRefuses) {
  const Outcome profiled = folder_.run("profile",
                                       "--run run.json --out m.json --cluster-out c.json --devices "
                                       "2 --rounds 1 --steps 2 --quiet");
  ASSERT_EQ(profiled.code, 0) << profiled.err;
  const ModelProfile measured = read_model_profile(path("m.json"));
  const Cluster ample = tiny_cluster(kAmpleMemory);
  Bytes most{0};
  for (const MemoryPeak& peak : simulate_plan(plan_, {measured, ample}).memory) {
    most = std::max(most, peak.total);
  }
  write_cluster(tiny_cluster(Bytes{most.count - 1}), path("tight.json"));
  expect_refusal("verify", "--run run.json --cluster tight.json --plan plan.json", 3,
                 "plan.json: the plan does not fit: device");
  write_cluster(tiny_cluster(most), path("enough.json"));
  const Outcome enough = folder_.run(
      "verify",
      "--run run.json --cluster enough.json --plan plan.json --blocks 2 --steps 1 --quiet");
  EXPECT_NE(enough.code, 3) << enough.err;
  EXPECT_NE(enough.out, "");
}

TEST_F(ToldVerbs, TrainSaysWherePredictionsGoBeyondTheMeasuredSizes) {
  const std::string note = "note: some costs are extrapolated beyond the measured sizes\n";
  const Outcome within = folder_.run("train", kQuietTrain + "--steps 1");
  ASSERT_EQ(within.code, 0) << within.err;
  EXPECT_EQ(within.out.find(note), std::string::npos) << within.out;
  for (Layer& layer : profile_.layers) layer.costs[0].micro_batch_size = 2;
  write_model_profile(profile_, path("model.json"));
  const Outcome beyond = folder_.run("train", kQuietTrain + "--steps 1");
  ASSERT_EQ(beyond.code, 0) << beyond.err;
  EXPECT_NE(beyond.out.find(note), std::string::npos) << beyond.out;
  const Outcome json = folder_.run("train", kQuietTrain + "--steps 1 --json --out beyond");
  JsonFields answer(parse_json(json.out, "answer"));
  JsonFields phase(answer.required("phases").items()[0]);
  EXPECT_TRUE(phase.required("extrapolated").boolean());
  const std::string trace = read_text_file(path("beyond/trace.jsonl"));
  EXPECT_NE(trace.find("\"extrapolated\":true"), std::string::npos) << trace;
}

TEST_F(ToldVerbs, ProgressNamesNoAccuracyBeforeThereIsOne) {
  std::vector<std::optional<double>> told;
  TrainOptions options;
  options.config = tiny_config();
  options.profile = profile_;
  options.cluster = tiny_cluster(kAmpleMemory);
  const Dataset data = load_data(options.config);
  train(options, data, [&](const TrainProgress& now) {
    if (now.event.empty()) told.push_back(now.accuracy);
  });
  // Each epoch has six steps, then an evaluation.
  ASSERT_EQ(told.size(), 21U);
  for (std::size_t i = 0; i < told.size(); ++i) EXPECT_EQ(told[i].has_value(), i >= 6) << i;
}

TEST_F(ToldVerbs, ProfileSaysThatOtherProgramsWereBusyAndKeepsItInTheProvenance) {
  if (!std::filesystem::exists("/proc/stat")) GTEST_SKIP() << "this system has no /proc/stat";
  std::atomic<bool> stop = false;
  std::thread other([&] {
    while (!stop.load(std::memory_order_relaxed)) {
    }
  });
  const std::string arguments =
      "--run run.json --out m.json --cluster-out c.json --devices 1 --rounds 1 --steps 2";
  const Outcome loud = folder_.run("profile", arguments);
  const Outcome quiet = folder_.run("profile", arguments + " --quiet");
  stop = true;
  other.join();
  ASSERT_EQ(loud.code, 0) << loud.err;
  const std::size_t begin = loud.err.find("frazil profile: other programs kept ");
  ASSERT_NE(begin, std::string::npos) << loud.err;
  EXPECT_NE(loud.err.find(" cores busy meanwhile, so these times may be too long\n", begin),
            std::string::npos)
      << loud.err;
  EXPECT_EQ(quiet.err, "");
  for (const Provenance& provenance :
       {read_model_profile(path("m.json")).provenance, read_cluster(path("c.json")).provenance}) {
    ASSERT_EQ(provenance.count("foreign_cores"), 1U);
    EXPECT_GT(std::stod(provenance.at("foreign_cores")), 0.15);
  }
}

TEST_F(ToldVerbs, TrainSaysWhichParameterGroupsChangeNothing) {
  RunConfig config = tiny_config();
  config.optimizer.groups = {{"*.bias", 0, 1}, {"classifier.*", 0, 2}, {"*.dense.bias", 0, 1}};
  write_text_file(path("run.json"), to_json(config));
  const std::string arguments =
      "--run run.json --profile model.json --cluster cluster.json --steps 1 --quiet";
  EXPECT_EQ(folder_.run("train", arguments).err,
            "frazil train: the parameter group `*.dense.bias` changes nothing: groups before it "
            "have all parameters that it matches\n");
}

TEST_F(ToldVerbs, ASpecialFileIsRefusedBeforeAnythingIsMeasured) {
  expect_refusal("profile", "--run run.json --out /dev/null", 2, "/dev/null: found a special file");
}

}  // namespace
}  // namespace frazil
