// `frazil train --init-from FILE` as a process: a run starts from the weights of a file.

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "exec/disk/tensor_file.h"
#include "profiles/model_profile_json.h"
#include "tests/exec/support/tiny_run.h"
#include "tests/support/program_folder.h"
#include "tests/support/write_cluster.h"

namespace frazil {
namespace {

namespace fs = std::filesystem;

const std::string kStartInputs =
    "--run run.json --profile model.json --cluster cluster.json --quiet ";

class InitFrom : public testing::Test {
 protected:
  void SetUp() override {
    write_run("run.json", default_config());
    write_model_profile(tiny_profile(default_config()), path("model.json"));
    write_cluster(tiny_cluster(kAmpleMemory), path("cluster.json"));
  }
  std::string path(const std::string& name) const { return folder_.path(name); }
  void write_run(const std::string& name, const RunConfig& config) const {
    write_text_file(path(name), to_json(config));
  }
  Outcome train(const std::string& flags) const { return folder_.run("train", flags); }
  nlohmann::json answer(const std::string& flags) const {
    const Outcome outcome = train(flags + " --json");
    EXPECT_EQ(outcome.code, 0) << flags << ": " << outcome.err;
    return outcome.code == 0 ? nlohmann::json::parse(outcome.out) : nlohmann::json();
  }
  // Expects one sentence with this part, and nothing else.
  void expect_refusal(const std::string& flags, int code, const std::string& part) const {
    SCOPED_TRACE(flags);
    const Outcome outcome = train(flags);
    EXPECT_EQ(outcome.code, code);
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    EXPECT_NE(outcome.err.find(part), std::string::npos) << outcome.err;
  }

  ProgramFolder folder_{testing::UnitTest::GetInstance()->current_test_info()->name()};
};

// A run at rate 0 keeps what it starts from, under any plan and freezing.
TEST_F(InitFrom, TakesWhatAnEarlierRunLeft) {
  const auto trained = answer(kStartInputs + "--out first --steps 3");
  RunConfig still = default_config();
  still.seed = 5;
  still.optimizer.groups = {{.match = "*", .weight_decay = 0, .learning_rate_scale = 0}};
  write_run("still.json", still);
  const auto kept = answer(
      "--run still.json --profile model.json --cluster cluster.json --quiet "
      "--init-from first/weights.safetensors --out second");
  const TensorFile first(path("first/weights.safetensors"));
  const TensorFile second(path("second/weights.safetensors"));
  ASSERT_EQ(first.header().tensors.size(), second.header().tensors.size());
  for (const TensorEntry& entry : first.header().tensors) {
    EXPECT_TRUE(at::equal(first.view(entry.name), second.view(entry.name))) << entry.name;
  }
  EXPECT_EQ(kept.at("loss"), trained.at("loss"));
}

TEST_F(InitFrom, HasTheSameBitsByFlagByConfigurationAndOverProcesses) {
  (void)answer(kStartInputs + "--out first --steps 3");
  const auto by_flag = answer(kStartInputs + "--init-from first/weights.safetensors --out by-flag");
  const auto drawn = answer(kStartInputs + "--out drawn");
  EXPECT_NE(by_flag.at("state_hash"), drawn.at("state_hash"));
  const auto over_processes =
      answer(kStartInputs + "--init-from first/weights.safetensors --procs 2 --out over-processes");
  EXPECT_EQ(over_processes.at("state_hash"), by_flag.at("state_hash"));
  RunConfig config = default_config();
  config.init_from = "first/weights.safetensors";
  write_run("run.json", config);
  EXPECT_EQ(answer(kStartInputs + "--out by-configuration").at("state_hash"),
            by_flag.at("state_hash"));
  const Outcome profiled = folder_.run(
      "profile",
      "--run run.json --devices 1 --rounds 1 --steps 2 --out p.json --cluster-out c.json --quiet");
  EXPECT_EQ(profiled.code, 0) << profiled.err;
}

TEST_F(InitFrom, IsWhatARunGoesOnWith) {
  (void)answer(kStartInputs + "--out first --steps 3");
  (void)answer(kStartInputs + "--out other --steps 2");
  fs::create_directory(path("w"));
  fs::copy_file(path("first/weights.safetensors"), path("w/start.safetensors"));
  for (const std::string name : {"unmoved", "cut"}) {
    (void)answer(kStartInputs +
                 "--init-from w/start.safetensors --steps 11 --checkpoint-every 4 --out " + name);
  }
  const auto unmoved = answer("--resume unmoved --quiet --steps 18");
  const std::string more = "--resume cut --quiet --steps 18 ";
  fs::rename(path("w"), path("v"));
  expect_refusal(more, 2, "w/start.safetensors: found");
  expect_refusal(more + "--init-from other/weights.safetensors", 2, "init_from.hash");
  const auto resumed = answer(more + "--init-from v/start.safetensors");
  EXPECT_EQ(resumed.at("resumed_from_step"), 11);
  EXPECT_EQ(resumed.at("state_hash"), unmoved.at("state_hash"));
}

TEST_F(InitFrom, RefusesWhatIsNotTheModels) {
  RunConfig other = default_config();
  vit_of(other).classes += 1;
  write_run("other.json", other);
  write_model_profile(tiny_profile(other), path("other-model.json"));
  (void)answer(
      "--run other.json --profile other-model.json --cluster cluster.json --quiet --out other "
      "--steps 1");
  expect_refusal(kStartInputs + "--init-from other/weights.safetensors", 2, "of \"classifier.");
  expect_refusal(kStartInputs + "--init-from none.safetensors", 2, "none.safetensors: found");
  expect_refusal(kStartInputs + "--init-from run.json", 2, "run.json: found");
  expect_refusal(kStartInputs + "--init-from ''", 2, "an empty --init-from");
  // What it starts from is not overwritten.
  (void)answer(kStartInputs + "--out out --steps 2");
  const std::string weights = read_text_file(path("out/weights.safetensors"));
  expect_refusal(kStartInputs + "--init-from out/weights.safetensors --out out --force", 2,
                 "--init-from " + path("out/weights.safetensors") + " inside the run of --out");
  EXPECT_EQ(read_text_file(path("out/weights.safetensors")), weights);
}

// Each process finds the file in the folder that it was begun in.
TEST_F(InitFrom, IsRefusedByAProcessWhoseFileHoldsSomethingElse) {
  (void)answer(kStartInputs + "--out first --steps 3");
  (void)answer(kStartInputs + "--out other --steps 2");
  fs::create_directory(path("there"));
  const auto lead_and_join = [&](const std::string& weights_there) {
    fs::copy_file(path("first/weights.safetensors"), path("start.safetensors"),
                  fs::copy_options::overwrite_existing);
    fs::copy_file(path(weights_there + "/weights.safetensors"), path("there/start.safetensors"),
                  fs::copy_options::overwrite_existing);
    write_text_file(path("both.sh"),
                    "cd '" + path("") + "'\nprogram='" FRAZIL_PROGRAM_FOLDER "/frazil-train'\n" +
                        "$program " + kStartInputs +
                        "--init-from /proc/self/cwd/start.safetensors --listen 127.0.0.1:0 "
                        "--procs 2 --steps 2 --json >lead.txt 2>lead.err &\n"
                        "for i in $(seq 600); do grep -q 'listening at' lead.err && break; "
                        "sleep 0.1; done\n"
                        "address=$(sed -n 's/.*listening at \\([^ ]*\\).*/\\1/p' lead.err)\n"
                        "cd there\n$program --join $address >join.txt 2>join.err\nwait $!\n");
    return WEXITSTATUS(std::system(("bash '" + path("both.sh") + "'").c_str()));
  };
  EXPECT_EQ(lead_and_join("first"), 0) << read_text_file(path("lead.err"));
  EXPECT_NE(lead_and_join("other"), 0);
  EXPECT_NE(read_text_file(path("lead.err"))
                .find("a member of the run: found files with the hashes init_from.hash "),
            std::string::npos)
      << read_text_file(path("lead.err"));
}

}  // namespace
}  // namespace frazil
