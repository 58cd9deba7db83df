// `frazil train --resume` refuses what it cannot go on with: in one sentence, with exit code 2, and
// with every file of the run as it was.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "planner/plan/plan_json.h"
#include "profiles/model_profile_json.h"
#include "tests/exec/support/tiny_run.h"
#include "tests/support/program_folder.h"
#include "tests/support/write_cluster.h"

namespace frazil {
namespace {

namespace fs = std::filesystem;
using Texts = std::map<std::string, std::string>;  // by path

const std::string kBegin = "--profile model.json --cluster cluster.json --out out --quiet ";
const std::string kResume = "--checkpoint-every 4 --resume --run run.json " + kBegin;

class RefusedResume : public testing::Test {
 protected:
  void SetUp() override {
    RunConfig config = default_config();
    const ModelProfile profile = tiny_profile(config);
    write_text_file(path("run.json"), to_json(config));
    write_model_profile(profile, path("model.json"));
    write_cluster(tiny_cluster(Bytes{600'000}), path("cluster.json"));
    ASSERT_EQ(train("--checkpoint-every 4 --run run.json " + kBegin).code, 0);
  }

  std::string path(const std::string& name) const { return folder_.path(name); }
  Outcome train(const std::string& flags) const { return folder_.run("train", flags); }
  std::string checkpoint(int step) const {
    const std::string digits = std::to_string(step);
    return path("out/checkpoints/step-" + std::string(12 - digits.size(), '0') + digits +
                ".safetensors");
  }
  Texts texts() const {
    Texts texts;
    for (const auto& entry : fs::recursive_directory_iterator(path("out"))) {
      if (entry.is_regular_file()) texts[entry.path().string()] = read_text_file(entry.path());
    }
    return texts;
  }
  void expect_refusal(const std::string& flags, const std::string& sentence) const {
    SCOPED_TRACE(flags);
    const Texts before = texts();
    const Outcome outcome = train(flags);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(outcome.err.find("frazil train: "), 0U) << outcome.err;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    EXPECT_NE(outcome.err.find(sentence), std::string::npos) << outcome.err;
    EXPECT_EQ(texts(), before);
  }

  ProgramFolder folder_{testing::UnitTest::GetInstance()->current_test_info()->name()};
};

TEST_F(RefusedResume, OfAnotherRunNamesEveryKeyThatDiffers) {
  const std::string folder = "out/checkpoints: found a run begun with ";
  expect_refusal(kResume + "--seed 9", folder + "seed 1, expected this run's seed 9, or another");
  expect_refusal(kResume + "--no-freeze",
                 folder +
                     "freeze.policy.alpha 0.5, freeze.policy.interval_epochs 1, "
                     "freeze.policy.kind alpha, freeze.policy.start_epoch 2, expected this "
                     "run's freeze.policy.alpha unset, ");
  RunConfig other = default_config();
  other.optimizer.learning_rate = 0.5;
  other.data.seed = 3;
  write_text_file(path("other.json"), to_json(other));
  expect_refusal("--checkpoint-every 4 --resume --run other.json " + kBegin,
                 "optimizer.learning_rate 0.5, or another folder");
}

TEST_F(RefusedResume, WithoutTheKeysSaysThatItIsAnotherRun) {
  write_text_file(path("out/checkpoints/run.json"), "{\"format\": \"fra");
  expect_refusal(kResume + "--seed 9", "steps.journal:1: found the journal of another run");
  EXPECT_EQ(train(kResume).code, 0);
  expect_refusal(kResume + "--seed 9", "begun with seed 1, expected this run's seed 9");
}

TEST_F(RefusedResume, WithFewerStepsThanTheRunHasSaysHowManyItHas) {
  for (const std::string& flags : {kResume, std::string("--resume out ")}) {
    expect_refusal(flags + "--steps 7",
                   "command line: found --steps 7 for a finished run of 18 steps, expected 18 or "
                   "more: ");
  }
}

TEST_F(RefusedResume, OfBadInputLoadsNothing) {
  RunConfig config = default_config();
  RunConfig wider = config;
  vit_of(wider).dim = 64;
  PlanShape shape{.micro_batches = 2, .cuts = {{2}}, .owned = {2}};
  Plan plan = make_small_plan(tiny_profile(wider), shape);
  plan.batch_size = 8;
  plan.micro_batch_size = 4;
  write_plan(plan, path("foreign.json"));
  expect_refusal(kResume + "--plan foreign.json", "foreign.json");
  config.cache.kind = CacheConfig::Kind::kOn;
  config.cache.disk = Bytes{1 << 20};
  config.cache.folder = "gone";
  write_text_file(path("cached.json"), to_json(config));
  expect_refusal("--checkpoint-every 4 --resume --run cached.json " + kBegin,
                 "gone, no folder, expected a folder that is there");
  std::string text = to_json(default_config());
  text.insert(1, "\"surprise\": 1, ");
  write_text_file(path("unknown.json"), text);
  expect_refusal("--checkpoint-every 4 --resume --run unknown.json " + kBegin, "surprise");
}

// First both checkpoints are broken, at each kind of place; then the older one alone is whole,
// which is enough.
TEST_F(RefusedResume, WithoutAGoodCheckpointIsRefusedAndWithOneGoesOn) {
  const std::string newest = read_text_file(checkpoint(18));
  const std::string older = read_text_file(checkpoint(16));
  std::uint64_t header = 0;
  std::memcpy(&header, newest.data(), sizeof header);
  const std::size_t data = 8 + static_cast<std::size_t>(header);
  for (const std::size_t place : {std::size_t{0}, std::size_t{20}, data, newest.size() - 1}) {
    SCOPED_TRACE(place);
    for (const int step : {16, 18}) {
      std::string broken = step == 18 ? newest : older;
      broken[place % broken.size()] ^= 1;
      write_text_file(checkpoint(step), broken);
    }
    expect_refusal(kResume, "no checkpoint that holds; the newest: out/checkpoints/step-");
  }
  write_text_file(checkpoint(18), newest.substr(0, newest.size() / 2));
  expect_refusal(kResume, "a file that was cut short");
  write_text_file(checkpoint(16), older);
  const Outcome outcome = train(kResume + "--json");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("\"resumed_from_step\": 16,"), std::string::npos) << outcome.out;
  EXPECT_EQ(read_text_file(checkpoint(18)), newest) << "written again";
  std::vector<std::string> aside;
  for (const auto& [file, text] : texts()) {
    if (file.find("018.safetensors.damaged-") != std::string::npos) aside.push_back(text);
  }
  EXPECT_EQ(aside, std::vector<std::string>{newest.substr(0, newest.size() / 2)});
}

}  // namespace
}  // namespace frazil
