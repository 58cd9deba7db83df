#include "analysis/ablation/pair_result.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "profiles/error.h"
#include "profiles/text_file.h"
#include "tests/analysis/ablation/planted_runs.h"
#include "tests/support/program_folder.h"

namespace frazil {
namespace {

PairResult planted_result() {
  PlantedRuns planted;
  planted.add(Arm::kShorter, 3, 1.0 / 3, 2.5);
  planted.disturb_last(0.125);
  PairResult result = planted.runs().results.front();
  result.inputs = {"aa", "bb", "cc"};
  result.loss = 0.1;
  result.transitions = 2;
  result.transition_time = Duration{77};
  result.overhead = {.plan = Duration{3}, .start = Duration{4}};
  result.made_from = "origin";
  result.cached = 55;
  return result;
}

TEST(PairResult, ReadsBackAsItWasWritten) {
  const PairResult result = planted_result();
  EXPECT_EQ(parse_pair_result(to_json(result), "result.json"), result);
  EXPECT_EQ(to_json(result).find("frazil_version"), std::string::npos) << "older results have none";
  PairResult versioned = result;
  versioned.frazil_version = "0.4.0";
  EXPECT_EQ(parse_pair_result(to_json(versioned), "result.json"), versioned);
  PairResult bare = result;
  bare.foreign_cores.reset();
  bare.made_from.clear();
  bare.curve.clear();
  EXPECT_EQ(parse_pair_result(to_json(bare), "result.json"), bare);
  PairResult placed = result;
  placed.inputs.processes = 2;
  placed.inputs.device = "cuda";
  placed.inputs.gpus = "1,0";
  EXPECT_EQ(parse_pair_result(to_json(placed), "result.json"), placed);
}

TEST(PairResult, IsRefusedWhosePartsDoNotGoTogether) {
  const PairResult good = planted_result();
  const auto refused = [&](auto change) -> std::string {
    PairResult result = good;
    change(result);
    try {
      (void)parse_pair_result(to_json(result), "result.json");
      return "nothing";
    } catch (const InputError& error) {
      return error.found();
    }
  };
  EXPECT_EQ(refused([](PairResult&) {}), "nothing");
  EXPECT_EQ(refused([](PairResult& result) { result.wall += Duration{1}; }),
            "phases of 2500000000 ns at $.phases");
  EXPECT_EQ(refused([](PairResult& result) { result.phases.clear(); }), "no phases at $.phases");
  EXPECT_EQ(refused([](PairResult& result) { result.phases[0].first_step = 1; }),
            "a phase that begins at step 1 at $.phases");
  EXPECT_EQ(refused([](PairResult& result) { result.phases.push_back(result.phases[0]); }),
            "a phase that begins at step 0 at $.phases");
  EXPECT_EQ(
      refused([](PairResult& result) {
        result.phases.push_back({.first_step = result.steps, .mask = "111", .plan = "a plan"});
      }),
      "a phase behind the last step at $.phases");
  EXPECT_EQ(refused([](PairResult& result) { result.phases[0].mask = "1x1"; }),
            R"(`"1x1"` at $.phases[0].mask)");
}

TEST(PairResult, IsRefusedUnderOtherInputs) {
  const ProgramFolder folder("pair_result");
  const std::string file = folder.path("result.json");
  const PairResult result = planted_result();
  EXPECT_FALSE(find_pair_result(file, result.pair, result.inputs).has_value());
  write_pair_result(result, file);
  EXPECT_EQ(find_pair_result(file, result.pair, result.inputs), result);
  const auto sentence = [&](const ArmSeed& pair, const AblationInputs& inputs) -> std::string {
    try {
      (void)find_pair_result(file, pair, inputs);
      return "nothing";
    } catch (const InputError& error) {
      return error.found();
    }
  };
  EXPECT_EQ(sentence(result.pair, {"aa", "bb", "dd"}), "the result of another cluster (cc)");
  EXPECT_EQ(sentence(result.pair, {"aa", "dd", "cc"}), "the result of another model profile (bb)");
  EXPECT_EQ(sentence(result.pair, {"dd", "bb", "cc"}),
            "the result of another run configuration (aa)");
  EXPECT_EQ(sentence(result.pair, {"aa", "bb", "cc", 2, "cpu", ""}),
            "the result of another place (--procs 1 --device cpu)");
  EXPECT_EQ(sentence({Arm::kShorter, 4}, result.inputs), "the result of another seed (3)");
  EXPECT_EQ(sentence({Arm::kAll, 3}, result.inputs), "the result of another arm (shorter)");
  write_text_file(file, to_json(result).substr(0, 200));
  EXPECT_THROW((void)find_pair_result(file, result.pair, result.inputs), InputError);
}

TEST(PairResult, IsDisturbedAboveATwentiethOfACore) {
  PairResult result;
  EXPECT_FALSE(is_disturbed(result));
  result.foreign_cores = 0.05;
  EXPECT_FALSE(is_disturbed(result));
  result.foreign_cores = 0.06;
  EXPECT_TRUE(is_disturbed(result));
}

}  // namespace
}  // namespace frazil
