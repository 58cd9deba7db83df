#pragma once
// Tests that run `frazil train` and other programs on the tiny run, in a folder with its model
// profile (model.json) and a cluster of two devices (cluster.json), and look at their JSON answers.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "profiles/model_profile_json.h"
#include "tests/exec/support/tiny_run.h"
#include "tests/support/program_folder.h"
#include "tests/support/write_cluster.h"

namespace frazil {

using Json = nlohmann::json;

// Half the model fits on a device, and all of it once blocks are frozen.
inline constexpr Bytes kHalf{600'000};

class RunVerbs : public testing::Test {
 protected:
  explicit RunVerbs(Bytes memory_of_device) : memory_(memory_of_device) {}

  void SetUp() override {
    write_model_profile(tiny_profile(tiny_config()), path("model.json"));
    write_cluster(tiny_cluster(memory_), path("cluster.json"));
  }
  static RunConfig config() { return default_config(); }
  std::string path(const std::string& name) const { return folder_.path(name); }
  Json answer(const std::string& verb, const std::string& arguments) const {
    const Outcome outcome = folder_.run(verb, arguments);
    EXPECT_EQ(outcome.code, 0) << verb << " " << arguments << ": " << outcome.err;
    return outcome.code == 0 ? Json::parse(outcome.out) : Json();
  }
  Outcome begin(const RunConfig& config, const std::string& arguments) const {
    write_text_file(path("run.json"), to_json(config));
    return folder_.run(
        "train",
        "--run run.json --profile model.json --cluster cluster.json --quiet --json " + arguments);
  }
  Json train(const RunConfig& config, const std::string& arguments) const {
    const Outcome outcome = begin(config, arguments);
    EXPECT_EQ(outcome.code, 0) << arguments << ": " << outcome.err;
    return outcome.code == 0 ? Json::parse(outcome.out) : Json();
  }
  // Expects the exit code and the one sentence, and that nothing is left of a run.
  void expect_refusal(const RunConfig& config, const std::string& arguments, int code,
                      const std::string& part) const {
    const Outcome outcome = begin(config, arguments + " --out refused");
    EXPECT_EQ(outcome.code, code) << arguments << ": " << outcome.err;
    EXPECT_NE(outcome.err.find(part), std::string::npos) << outcome.err;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    EXPECT_FALSE(std::filesystem::exists(path("refused/events.jsonl"))) << arguments;
  }

  ProgramFolder folder_{testing::UnitTest::GetInstance()->current_test_info()->name()};

 private:
  Bytes memory_;
};

}  // namespace frazil
