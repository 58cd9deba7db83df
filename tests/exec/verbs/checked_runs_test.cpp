// `frazil check` as a process, over what `frazil train` leaves.

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>

#include "profiles/model_profile_json.h"
#include "tests/exec/support/tiny_run.h"
#include "tests/support/program_folder.h"
#include "tests/support/write_cluster.h"

namespace frazil {
namespace {

namespace fs = std::filesystem;

class CheckedRuns : public testing::Test {
 protected:
  void SetUp() override {
    write_text_file(path("run.json"), to_json(default_config()));
    write_model_profile(tiny_profile(default_config()), path("model.json"));
    write_cluster(tiny_cluster(kAmpleMemory), path("cluster.json"));
  }
  std::string path(const std::string& name) const { return folder_.path(name); }
  void train(const std::string& flags) const {
    const Outcome outcome = folder_.run(
        "train", "--run run.json --profile model.json --cluster cluster.json --quiet " + flags);
    ASSERT_EQ(outcome.code, 0) << outcome.err;
  }
  nlohmann::json check(const std::string& folder, int code) const {
    const Outcome outcome = folder_.run("check", folder + " --json");
    EXPECT_EQ(outcome.code, code) << outcome.out << outcome.err;
    return nlohmann::json::parse(outcome.out);
  }
  // Copies the run, changes one file of the copy, and returns the problems that are found.
  std::string problems_with(
      const std::string& file, const std::function<void(std::string&)>& change,
      const std::function<void()>& then = [] {}) const {
    fs::remove_all(path("copy"));
    fs::copy(path("out"), path("copy"), fs::copy_options::recursive);
    std::string text = read_text_file(path("copy/" + file));
    change(text);
    write_text_file(path("copy/" + file), text);
    then();
    std::string problems;
    const nlohmann::json answer = check("copy", 4);
    for (const auto& problem : answer.at("problems")) {
      problems += problem.get<std::string>() + "\n";
    }
    return problems;
  }

  ProgramFolder folder_{testing::UnitTest::GetInstance()->current_test_info()->name()};
};

TEST_F(CheckedRuns, AgreeAsTheyAreLeft) {
  train("--out out --checkpoint-every 4");
  const nlohmann::json answer = check("out", 0);
  EXPECT_EQ(answer.at("agrees"), true);
  EXPECT_EQ(answer.at("steps"), 18);
  EXPECT_EQ(answer.at("checkpoints").size(), 2U);
  EXPECT_TRUE(answer.at("problems").empty());
  EXPECT_TRUE(answer.at("notes").empty()) << answer.at("notes");
  const std::string weights = answer.at("parts").at("weights");
  const std::string last = answer.at("checkpoints").back().at("weights");
  EXPECT_EQ(weights, last + ", after 18 steps");
  EXPECT_NE(folder_.run("check", "out").out.find("all parts hold and agree\n"), std::string::npos);
}

TEST_F(CheckedRuns, WithoutCheckpointsHaveEventsAndWeights) {
  train("--out out");
  const nlohmann::json answer = check("out", 0);
  EXPECT_EQ(answer.at("steps"), 18);
  EXPECT_TRUE(answer.at("checkpoints").empty());
  EXPECT_EQ(answer.at("parts").size(), 2U);
}

TEST_F(CheckedRuns, AreFoundDamagedInAnyFile) {
  train("--out out --checkpoint-every 4");
  const std::string newest = "checkpoints/step-000000000018.safetensors";
  const auto flip = [](std::size_t byte) {
    return [byte](std::string& text) { text[byte] = static_cast<char>(text[byte] ^ 4); };
  };
  const auto last = [](std::string& text) { text.back() = static_cast<char>(text.back() ^ 1); };
  const std::vector<std::tuple<std::string, std::function<void(std::string&)>, std::string>> cases{
      {"checkpoints/steps.journal", flip(5), "steps.journal: its first line does not hold"},
      {"checkpoints/steps.journal", flip(700), "steps.journal: line 11 does not hold, with "},
      {newest, last, newest + ": found a tensor whose hash does not hold"},
      {newest, flip(40), newest + ": found "},
      {newest, [](std::string& text) { text.pop_back(); }, "a file that was cut short"},
      {"weights.safetensors", last, "weights.safetensors: they have the hash "},
      {"checkpoints/run.json", [](std::string& text) { text[text.find("\"18\"") + 1] = '2'; },
       "run.json: its hash does not hold"},
      {"checkpoints/kernels.json",
       [](std::string& text) { text[text.find("\"torch\": ") + 10] = '1'; },
       "kernels.json: its hash does not hold"},
      {"checkpoints/kernels.json",
       [](std::string& text) { text[text.find("frazil.kernels") + 7] = 'K'; },
       "kernels.json: found "},
      {"events.jsonl", flip(3), "events.jsonl: found "},
      {"trace.jsonl", [](std::string& text) { text = "garbage"; }, "trace.jsonl: found "},
      {"trace.jsonl", [](std::string& text) { text[text.find("\"steps\":18") + 9] = '7'; },
       "trace.jsonl: "},
      {"events.jsonl", [](std::string& text) { text.back() = ' '; },
       "events.jsonl: its last line is torn, and the run has ended"},
      {"phase-0/plan.json", flip(3), "phase-0/plan.json: found "},
      {"phase-0/plan.json",
       [](std::string& text) {
         char& digit = text[text.find("model_hash") + 14];
         digit = digit == '0' ? '1' : '0';
       },
       "phase-0/plan.json: it is of another model than the run"},
      {"weights.safetensors",
       [](std::string& text) { text[text.find("vit.layernorm.bias")] = 'V'; },
       "weights.safetensors: its tensors have other names than those of the checkpoints"},
      {"weights.safetensors",
       [](std::string& text) { text[text.find("\"steps\":\"18\"") + 10] = '7'; },
       "weights.safetensors: they say that they are of 17 steps, and are those of 18"},
  };
  for (const auto& [file, change, expected] : cases) {
    const std::string problems = problems_with(file, change);
    EXPECT_NE(problems.find(expected), std::string::npos) << file << ": " << problems;
  }
}

TEST_F(CheckedRuns, ThatHaveEndedLackNothing) {
  train("--out out --checkpoint-every 4");
  for (const std::string file : {"weights.safetensors", "events.jsonl", "checkpoints/kernels.json",
                                 "checkpoints/run.json", "checkpoints/steps.journal"}) {
    SCOPED_TRACE(file);
    ASSERT_TRUE(fs::exists(path("out/" + file)));
    const std::string problems = problems_with(
        file, [&](std::string&) {}, [&] { fs::remove(path("copy/" + file)); });
    EXPECT_EQ(problems.find(file + ": it is not there"), 0U) << problems;
  }
}

TEST_F(CheckedRuns, AreFoundToLackFilesOfAPhase) {
  train("--out out --checkpoint-every 4");
  fs::remove(path("out/phase-0/measured.csv"));
  fs::remove_all(path("out/phase-1"));
  const nlohmann::json problems = check("out", 4).at("problems");
  EXPECT_EQ(problems, nlohmann::json({"phase-0: it is incomplete, without measured.csv",
                                      "phase-1: it is not there, and the run has ended"}));
  fs::remove(path("out/trace.jsonl"));
  EXPECT_EQ(check("out", 4).at("problems"),
            nlohmann::json({"phase-0: it is incomplete, without measured.csv"}));
}

TEST_F(CheckedRuns, AreFoundToDisagree) {
  train("--out out --checkpoint-every 4");
  const std::string loss = problems_with("events.jsonl", [](std::string& text) {
    const std::size_t place = text.find("\"loss\":", text.find("\"kind\":\"step\"")) + 9;
    text[place] = text[place] == '.' ? '3' : '.';
  });
  EXPECT_NE(loss.find("events.jsonl: "), std::string::npos) << loss;
  const std::string lost = problems_with("events.jsonl", [](std::string& text) {
    const std::size_t begin = text.find("{\"step\":5,\"kind\":\"step\"");
    text.erase(begin, text.find('\n', begin) + 1 - begin);
  });
  EXPECT_NE(lost.find("it has no event of 1 of the steps before 18"), std::string::npos) << lost;
  fs::remove_all(path("other"));
  train("--out other --checkpoint-every 4 --seed 9");
  const std::string other = problems_with("checkpoints/steps.journal", [&](std::string& text) {
    text = read_text_file(path("other/checkpoints/steps.journal"));
  });
  for (const char* const part :
       {"run.json: it is of another run than the journal", "it is of another run than the journal",
        "events.jsonl: step 0 has the loss ", "weights.safetensors: they have the hash "}) {
    EXPECT_NE(other.find(part), std::string::npos) << part << ": " << other;
  }
}

TEST_F(CheckedRuns, ThatAreNoneAreRefused) {
  fs::create_directories(path("empty"));
  for (const std::string place : {"absent", "run.json", "empty"}) {
    const Outcome outcome = folder_.run("check", place);
    EXPECT_EQ(outcome.code, 2) << place;
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(outcome.err.find("frazil check: " + place + ": found "), 0U) << outcome.err;
  }
}

}  // namespace
}  // namespace frazil
