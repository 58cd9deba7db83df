// `frazil train` as a process: what a run leaves in its folder, what protects it there, how it goes
// on without being told again, and how one that diverges ends.

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "profiles/model_profile_json.h"
#include "tests/exec/support/tiny_run.h"
#include "tests/support/program_folder.h"
#include "tests/support/write_cluster.h"

namespace frazil {
namespace {

namespace fs = std::filesystem;
using Texts = std::map<std::string, std::string>;  // by path

const std::string kInputs = "--run run.json --profile model.json --cluster cluster.json --quiet ";

class KeptRuns : public testing::Test {
 protected:
  void SetUp() override {
    write_text_file(path("run.json"), to_json(tiny_config()));
    write_model_profile(tiny_profile(tiny_config()), path("model.json"));
    write_cluster(tiny_cluster(kAmpleMemory), path("cluster.json"));
  }
  std::string path(const std::string& name) const { return folder_.path(name); }
  Outcome train(const std::string& flags) const { return folder_.run("train", flags); }
  nlohmann::json answer(const std::string& flags) const {
    const Outcome outcome = train(flags + " --json");
    EXPECT_EQ(outcome.code, 0) << flags << ": " << outcome.err;
    return outcome.code == 0 ? nlohmann::json::parse(outcome.out) : nlohmann::json();
  }
  Texts texts(const std::string& folder) const {
    Texts texts;
    for (const auto& entry : fs::recursive_directory_iterator(path(folder))) {
      if (entry.is_regular_file()) texts[entry.path().string()] = read_text_file(entry.path());
    }
    return texts;
  }
  std::vector<std::string> checkpoints(const std::string& folder) const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(path(folder + "/checkpoints"))) {
      const std::string name = entry.path().filename().string();
      if (name.starts_with("step-")) names.push_back(name.substr(14, 3));
    }
    std::sort(names.begin(), names.end());
    return names;
  }
  void expect_refusal(const std::string& flags, int code, const std::string& part) const {
    SCOPED_TRACE(flags);
    const Texts before = texts("");
    const Outcome outcome = train(flags);
    EXPECT_EQ(outcome.code, code);
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    EXPECT_NE(outcome.err.find(part), std::string::npos) << outcome.err;
    EXPECT_EQ(texts(""), before);
  }

  ProgramFolder folder_{testing::UnitTest::GetInstance()->current_test_info()->name()};
};

TEST_F(KeptRuns, EndWithTheirWeightsAndALastCheckpoint) {
  const auto plain = answer(kInputs + "--out plain --steps 11");
  const auto durable = answer(kInputs + "--out durable --steps 11 --checkpoint-every 4");
  EXPECT_EQ(plain.at("state_hash"), durable.at("state_hash"));
  EXPECT_EQ(checkpoints("durable"), (std::vector<std::string>{"008", "011"}));
  const std::string weights = read_text_file(path("plain/weights.safetensors"));
  EXPECT_EQ(read_text_file(path("durable/weights.safetensors")), weights);
  EXPECT_NE(weights.find("\"vit.encoder.layer.0.attention.attention.key.weight\""),
            std::string::npos);
}

TEST_F(KeptRuns, AreReplacedByForceAlone) {
  (void)answer(kInputs + "--out out");
  const std::string again = kInputs + "--out out --steps 7 ";
  const std::string found = "out: found a finished run of 18 steps, expected ";
  expect_refusal(again, 2,
                 found + "--force to replace it, or another folder (it kept no checkpoint");
  expect_refusal(again + "--checkpoint-every 2", 2, found + "--force to replace it");
  expect_refusal(again + "--force --plan absent.json", 2, "absent.json");
  write_cluster(tiny_cluster(Bytes{10'000}), path("tight.json"));
  expect_refusal(
      "--run run.json --profile model.json --cluster tight.json --quiet --out out --force", 3,
      "memory");
  (void)answer(again + "--force --checkpoint-every 3");
  expect_refusal(again, 2,
                 "found a finished run of 7 steps, expected --resume with --steps to give");
  const auto third = answer(again + "--force");
  EXPECT_FALSE(fs::exists(path("out/checkpoints")));
  EXPECT_FALSE(fs::exists(path("out/phase-2")));
  const auto alone = answer(kInputs + "--out alone --steps 7");
  EXPECT_EQ(third.at("state_hash"), alone.at("state_hash"));
}

// The limit on file sizes stands for a full disk.
TEST_F(KeptRuns, LeaveNothingWhereTheirInputsCannotBeWritten) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit small = before;
  small.rlim_cur = 512;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const Outcome outcome = train(kInputs + "--out out");
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_EQ(outcome.code, 8) << outcome.err;
  EXPECT_FALSE(fs::exists(path("out")));
}

TEST_F(KeptRuns, GoOnWithTheirOwnFlags) {
  RunConfig other = tiny_config();
  const auto whole = answer(kInputs + "--out whole --seed 4 --no-freeze");
  (void)answer(kInputs + "--out out --seed 4 --no-freeze --checkpoint-every 5 --steps 11");
  // What the run was begun with is gone; it keeps its own.
  for (const std::string name : {"run.json", "model.json", "cluster.json"}) {
    fs::rename(path(name), path("away-" + name));
  }
  const auto same = answer("--resume out --quiet");
  EXPECT_EQ(same.at("resumed_from_step"), 11);
  EXPECT_TRUE(same.at("phases").empty());
  const Outcome text = folder_.run("train", "--resume out --quiet");
  EXPECT_EQ(text.out.find("test accuracy "), 0U) << "a table without rows: " << text.out;
  const auto more = answer("--resume out --quiet --steps 20");
  EXPECT_EQ(more.at("resumed_from_step"), 11);
  EXPECT_EQ(checkpoints("out"), (std::vector<std::string>{"015", "020"}));
  EXPECT_EQ(answer("--resume out --quiet").at("state_hash"), more.at("state_hash"));
  EXPECT_NE(more.at("state_hash"), whole.at("state_hash"));
  // The log is that of the whole run.
  const Outcome report = folder_.run("report", "out --json");
  ASSERT_EQ(report.code, 0) << report.err;
  const auto run = nlohmann::json::parse(report.out).at("runs").at(0);
  EXPECT_EQ(run.at("steps").get<int>() + run.at("unmeasured_steps").get<int>(), 20);
  EXPECT_EQ(run.at("transitions"), 0) << "two starts, and no transition from plan to plan";
}

TEST_F(KeptRuns, MayBeNamedByALink) {
  const auto plain = answer(kInputs + "--out plain --steps 6");
  for (const std::string flags : {"", "--checkpoint-every 3 "}) {
    SCOPED_TRACE(flags);
    fs::remove_all(path("real"));
    fs::remove(path("link"));
    fs::create_directories(path("real"));
    fs::create_directory_symlink("real", path("link"));
    const auto linked = answer(kInputs + flags + "--out link --steps 6");
    EXPECT_EQ(linked.at("state_hash"), plain.at("state_hash"));
    EXPECT_TRUE(fs::exists(path("real/weights.safetensors")));
    EXPECT_TRUE(fs::exists(path("real/trace.jsonl")));
  }
  EXPECT_EQ(answer("--resume link/ --steps 9 --quiet").at("resumed_from_step"), 6);
  EXPECT_EQ(checkpoints("real"), (std::vector<std::string>{"006", "009"}));
}

TEST_F(KeptRuns, AreReplacedBesideFilesOfOtherTrainers) {
  write_text_file(path("out/checkpoints/step-7.ckpt"), "theirs");
  write_text_file(path("out/checkpoints/best.pt"), "theirs");
  (void)answer(kInputs + "--out out --steps 4 --checkpoint-every 2");
  (void)answer(kInputs + "--out out --steps 4 --force");
  EXPECT_TRUE(fs::exists(path("out/checkpoints/step-7.ckpt")));
  EXPECT_TRUE(fs::exists(path("out/checkpoints/best.pt")));
  EXPECT_FALSE(fs::exists(path("out/checkpoints/steps.journal")));
}

// The run that was given many steps is told as if it was killed before the first of them.
TEST_F(KeptRuns, ThatWereGivenTooManyStepsMayBeGivenFewerBeforeTheFirstIsDone) {
  (void)answer(kInputs + "--out out --steps 8 --checkpoint-every 4");
  const std::string flags = path("out/inputs/flags.json");
  const auto give = [&](const std::string& lengths) {
    auto json = nlohmann::json::parse(read_text_file(flags));
    json["steps"] = nlohmann::json::parse(lengths);
    write_text_file(flags, json.dump());
  };
  give("[8, 4000]");
  EXPECT_EQ(answer("--resume out --steps 12 --quiet").at("resumed_from_step"), 8);
  give("[8, 4000]");
  expect_refusal("--resume out --steps 14 --quiet", 2,
                 "expected 4000 or more: learning rate and freezing of steps from 8 on follow from "
                 "the length 4000");
}

TEST_F(KeptRuns, AreNotGoneOnWithWhereThatIsNotWhatWasAsked) {
  fs::create_directories(path("empty"));
  expect_refusal("--resume mistyped", 2, "mistyped: found no such folder");
  expect_refusal("--resume empty", 2, "empty: found a folder without a run");
  expect_refusal(kInputs + "--resume --checkpoint-every 3 --out empty", 2,
                 "a folder without a run");
  expect_refusal("--resume", 2, "--resume without a folder");
  expect_refusal("empty", 2, "only flags");
  (void)answer(kInputs + "--out plain --steps 4");
  expect_refusal(
      "--resume plain", 2,
      "plain: found a finished run of 4 steps without checkpoints, expected one that was "
      "begun with --checkpoint-every");
  (void)answer(kInputs + "--out out --steps 8 --checkpoint-every 3");
  expect_refusal("--resume out --seed 5", 2, "seed 1, expected this run's seed 5");
  expect_refusal("--resume out --steps 6", 2, "found --steps 6 for a finished run of 8 steps, ");
  expect_refusal("--resume out --force", 2, "--force beside --resume");
  expect_refusal("--resume out --out plain", 2, "two folders");
  // A finished run whose last checkpoint is lost has to end again before it gets more steps.
  fs::remove(path("out/checkpoints/step-000000000008.safetensors"));
  const Texts before = texts("out");
  const Outcome early = train("--resume out --steps 12 --quiet");
  EXPECT_EQ(early.code, 2);
  EXPECT_NE(early.err.find("a run of 8 steps whose newest checkpoint is of step 6"),
            std::string::npos)
      << early.err;
  EXPECT_EQ(texts("out"), before);
  (void)answer("--resume out --quiet");
  (void)answer("--resume out --steps 12 --quiet");
  expect_refusal("--resume out --steps 8 --quiet", 2, "a run that has done 12 steps");
}

TEST_F(KeptRuns, MayGoOnOnOtherDevices) {
  const auto whole = answer(kInputs + "--out whole --steps 14");
  (void)answer(kInputs + "--out out --steps 14 --checkpoint-every 5");
  fs::remove(path("out/checkpoints/step-000000000014.safetensors"));
  write_cluster(make_uniform_cluster(3, kAmpleMemory,
                                     {std::chrono::microseconds(5), BytesPerSecond{1'000'000'000}}),
                path("three.json"));
  const auto on = answer("--resume out --cluster three.json --quiet");
  EXPECT_EQ(on.at("resumed_from_step"), 10);
  EXPECT_EQ(on.at("state_hash"), whole.at("state_hash"));
}

TEST_F(KeptRuns, AFileInTheirPlaceIsToldAsOne) {
  expect_refusal(kInputs + "--out run.json", 2,
                 "run.json: found a file, expected a folder for the results");
  expect_refusal(kInputs + "--out run.json/out", 2, "run.json on the way");
}

// The rate is so large that weights leave what float32 holds within a few steps: by the loss of the
// next step, or where there is none by the weights of the last.
TEST_F(KeptRuns, ThatDivergeEndWithTenAndKeepNothingOfIt) {
  RunConfig wild = tiny_config();
  wild.optimizer = {.kind = OptimizerConfig::Kind::kSgd,
                    .learning_rate = 1e9,
                    .weight_decay = 1e9,
                    .schedule = RateSchedule::kConstant};
  write_text_file(path("wild.json"), to_json(wild));
  const std::string inputs =
      "--run wild.json --profile model.json --cluster cluster.json --quiet --no-freeze ";
  int diverged = 0;
  for (int steps = 1; steps <= 6; ++steps) {
    const std::string out = "out-" + std::to_string(steps);
    const Outcome outcome =
        train(inputs + "--checkpoint-every 1 --out " + out + " --steps " + std::to_string(steps));
    if (outcome.code == 0) continue;
    ++diverged;
    EXPECT_EQ(outcome.code, 10);
    EXPECT_EQ(outcome.out, "");
    EXPECT_NE(outcome.err.find("the training has diverged"), std::string::npos) << outcome.err;
    EXPECT_NE(outcome.err.find("step"), std::string::npos) << outcome.err;
    EXPECT_FALSE(fs::exists(path(out + "/weights.safetensors")));
    EXPECT_FALSE(fs::exists(path(out + "/trace.jsonl")));
  }
  EXPECT_GE(diverged, 3);
}

}  // namespace
}  // namespace frazil
