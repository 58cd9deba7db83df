// `frazil ablate` over `frazil train` itself: its runs are those that train makes by hand, arms
// that learn the same end with the same weights, and what is kept is what was trained.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "profiles/model_profile_json.h"
#include "tests/exec/support/tiny_run.h"
#include "tests/support/program_folder.h"
#include "tests/support/write_cluster.h"
#include "traces/freeze_trace.h"

namespace frazil {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

class AblatedRuns : public testing::Test {
 protected:
  void SetUp() override {
    write_text_file(path("run.json"), to_json(tiny_config()));
    write_model_profile(tiny_profile(tiny_config()), path("model.json"));
    write_cluster(tiny_cluster(kAmpleMemory), path("cluster.json"));
  }
  std::string path(const std::string& name) const { return folder_.path(name); }
  Json ablate(const std::string& flags) const {
    const Outcome outcome = folder_.run(
        "ablate",
        "--run run.json --profile model.json --cluster cluster.json --out out --quiet --json " +
            flags);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome.code == 0 ? Json::parse(outcome.out) : Json();
  }
  Json result(const std::string& pair) const {
    return Json::parse(read_text_file(path("out/" + pair + "/result.json")));
  }
  std::vector<std::string> masks(const std::string& pair) const {
    std::vector<std::string> masks;
    for (const TracedMask& mask :
         masks_of(read_freeze_trace(path("out/" + pair + "/run/trace.jsonl")))) {
      masks.push_back(std::to_string(mask.step) + " " + mask.mask.text());
    }
    return masks;
  }

  ProgramFolder folder_{testing::UnitTest::GetInstance()->current_test_info()->name()};
};

TEST_F(AblatedRuns, AreThoseOfTrainAndAreKept) {
  const Json answer = ablate("--arms unfrozen,freeze,all --seeds 2");
  ASSERT_EQ(answer["pairs"].size(), 6U);
  for (const Json& pair : answer["pairs"]) {
    SCOPED_TRACE(pair["arm"].get<std::string>() + " " + std::to_string(pair["seed"].get<int>()));
    std::int64_t phases = 0;
    std::int64_t device = 0;
    for (const Json& phase : pair["phases"]) {
      const std::int64_t wall = phase["wall_time_ns"];
      phases += wall;
      device += wall * phase["devices"].get<int>();
    }
    EXPECT_EQ(pair["wall_time_ns"], phases);
    EXPECT_EQ(pair["device_time_ns"], device);
    EXPECT_EQ(pair["cluster_time_ns"], 2 * phases);
    EXPECT_GT(pair["process_time_ns"], phases);
    ASSERT_EQ(pair["curve"].size(), 3U);
    EXPECT_EQ(pair["curve"][2]["accuracy"], pair["accuracy"]);
    // Steps and transitions are a part of wall time.
    EXPECT_LE(pair["curve"][2]["wall_time_ns"], phases);
    EXPECT_EQ(pair["test_samples"], 12);
    EXPECT_EQ(pair["arm"] == "unfrozen", pair["phases"].size() == 1);
  }
  // No choice of plans and no cache changes a bit of what is learnt.
  EXPECT_EQ(answer["arms"][1]["arm"], "freeze");
  EXPECT_EQ(answer["arms"][1]["has_weights_of_all"], true);
  EXPECT_EQ(answer["arms"][0]["has_weights_of_all"], false);
  const Outcome by_hand = folder_.run(
      "train",
      "--run run.json --profile model.json --cluster cluster.json --quiet --json --seed 2");
  ASSERT_EQ(by_hand.code, 0) << by_hand.err;
  EXPECT_EQ(Json::parse(by_hand.out)["state_hash"], result("all/seed-2")["state_hash"]);
  // What is kept is not trained again; what is lost is trained to the same weights.
  const Json lost = result("all/seed-1");
  const auto kept = fs::last_write_time(path("out/freeze/seed-2/answer.json"));
  fs::remove(path("out/all/seed-1/result.json"));
  ablate("--arms unfrozen,freeze,all --seeds 2");
  EXPECT_EQ(result("all/seed-1")["state_hash"], lost["state_hash"]);
  EXPECT_EQ(fs::last_write_time(path("out/freeze/seed-2/answer.json")), kept);
}

TEST_F(AblatedRuns, OfBadInputsAreRefusedAsTrainRefusesThem) {
  const std::string good = read_text_file(path("run.json"));
  const std::string files = "--run run.json --profile model.json --cluster cluster.json ";
  const auto refuse = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    write_text_file(path("run.json"), text);
    const Outcome checked = folder_.run("train", files + "--check");
    const Outcome ablated = folder_.run("ablate", files + "--out out --samples 36 --seeds 1");
    EXPECT_EQ(checked.code, 2) << to;
    EXPECT_EQ(ablated.code, 2) << to;
    EXPECT_EQ(ablated.err.substr(ablated.err.find(": ")),
              checked.err.substr(checked.err.find(": ")));
    EXPECT_FALSE(fs::exists(path("out")));
    return checked.err;
  };
  EXPECT_NE(refuse("\"dim\"", "\"dym\"").find("run.json:"), std::string::npos);
  EXPECT_NE(refuse("\"classes\": ", "\"classes\": 1").find("model.json"), std::string::npos);
  EXPECT_NE(refuse("\"epochs\": ", "\"epochs\": -").find("run.json:"), std::string::npos);
  write_text_file(path("run.json"), good);
  const Outcome checked = folder_.run("train", files + "--out out --check");
  EXPECT_EQ(checked.code, 0) << checked.err;
  EXPECT_NE(checked.out.find("the inputs hold: "), std::string::npos) << checked.out;
  EXPECT_FALSE(fs::exists(path("out"))) << "nothing is trained or written";
  const Json steps = Json::parse(folder_.run("train", files + "--check --json").out);
  const Json trained = ablate("--arms unfrozen --seeds 1");
  EXPECT_EQ(steps["steps"], trained["pairs"][0]["steps"]);
}

TEST_F(AblatedRuns, OverProcessesHaveTheBitsOfThreads) {
  const Json threads = ablate("--arms unfrozen,all --seeds 1");
  fs::rename(path("out"), path("threads"));
  const Json processes = ablate("--arms unfrozen,all --seeds 1 --procs 2");
  for (const int arm : {0, 1}) {
    EXPECT_EQ(processes["pairs"][arm]["processes"], 2);
    EXPECT_EQ(processes["pairs"][arm]["state_hash"], threads["pairs"][arm]["state_hash"]);
  }
  const std::string trace = read_text_file(path("out/all/seed-1/run/trace.jsonl"));
  EXPECT_NE(trace.find(" --procs 2 "), std::string::npos);
}

TEST_F(AblatedRuns, OfControlsFreezeAsManyBlocksAndEndEarlier) {
  ablate("--arms unfrozen,all,shorter,from-top,random-masks --seed-list 3");
  const std::vector<std::string> all = masks("all/seed-3");
  ASSERT_EQ(all.size(), 3U);
  for (const std::string control : {"from-top", "random-masks"}) {
    SCOPED_TRACE(control);
    const std::vector<std::string> own = masks(control + "/seed-3");
    ASSERT_EQ(own.size(), all.size());
    for (std::size_t i = 0; i < own.size(); ++i) {
      const auto frozen = [](const std::string& mask) {
        return std::count(mask.begin() + static_cast<std::ptrdiff_t>(mask.find(' ')), mask.end(),
                          '0');
      };
      EXPECT_EQ(own[i].substr(0, own[i].find(' ')), all[i].substr(0, all[i].find(' ')));
      EXPECT_EQ(frozen(own[i]), frozen(all[i])) << own[i];
      EXPECT_EQ(own[i].back(), '1');
    }
  }
  EXPECT_NE(masks("from-top/seed-3")[1], all[1]);
  const Json shorter = result("shorter/seed-3");
  EXPECT_EQ(masks("shorter/seed-3").size(), 1U);
  // By the definition: no other number of steps is nearer to the time of `all`.
  const double steps = result("unfrozen/seed-3")["steps"];
  EXPECT_EQ(steps, 18);
  const double step = result("unfrozen/seed-3")["wall_time_ns"].get<double>() / steps;
  const double wanted = result("all/seed-3")["wall_time_ns"].get<double>() / step;
  EXPECT_LE(std::abs(shorter["steps"].get<double>() - std::clamp(wanted, 1.0, steps)), 0.5);
  EXPECT_NEAR(shorter["epochs"].get<double>(), shorter["steps"].get<double>() / 6, 1e-9);
}

}  // namespace
}  // namespace frazil
