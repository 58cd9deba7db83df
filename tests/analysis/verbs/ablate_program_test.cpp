// Which runs `frazil ablate` asks for, what it keeps, and how it ends.

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "profiles/text_file.h"
#include "tests/analysis/verbs/ablate_program.h"
#include "tests/support/write_cluster.h"
#include "traces/freeze_trace.h"

namespace frazil {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

TEST_F(AblateProgram, NeverRunsAgainWhatHasFinished) {
  const std::string arms = "--arms unfrozen,all,shorter --json ";
  const Outcome first = ablate(arms + "--seeds 2");
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_EQ(calls().size(), 6U);
  const Outcome again = ablate(arms + "--seeds 2 --quiet");
  EXPECT_EQ(again.out, first.out);
  EXPECT_EQ(again.err, "");
  EXPECT_EQ(calls().size(), 6U);
  fs::remove(folder_.path("out/all/seed-2/result.json"));
  const Outcome third = ablate(arms + "--seeds 2");
  EXPECT_EQ(third.code, 0);
  EXPECT_NE(third.err.find("1 of the results that are there are of controls made from other runs"),
            std::string::npos)
      << third.err;
  EXPECT_EQ(calls().size(), 8U) << "and the control that was made from it";
  EXPECT_EQ(ablate(arms + "--seeds 3").code, 0);
  EXPECT_EQ(calls().size(), 11U);
}

TEST_F(AblateProgram, HasTrainReadItsInputsBeforeAnyRun) {
  plant("check refuses\n");
  const Outcome refused = ablate("--arms unfrozen --seeds 1 --samples 8 --json");
  EXPECT_EQ(refused.code, 2);
  EXPECT_EQ(refused.err, "frazil ablate: run.json:7: found a planted fault, expected none\n");
  EXPECT_EQ(Json::parse(refused.out)["error"]["line"], 7);
  EXPECT_TRUE(calls().empty());
  EXPECT_FALSE(fs::exists(folder_.path("out")));
  plant("");
  ASSERT_EQ(ablate("--arms unfrozen --seeds 1").code, 0);
  // What has finished is told whatever train would say now.
  plant("check refuses\n");
  EXPECT_EQ(ablate("--arms unfrozen --seeds 1").code, 0);
  EXPECT_EQ(ablate("--arms unfrozen --seeds 2").code, 2);
  EXPECT_TRUE(has_result("unfrozen/seed-1"));
}

TEST_F(AblateProgram, RefusesResultsOfOtherInputs) {
  ASSERT_EQ(ablate("--arms unfrozen --seeds 1").code, 0);
  write_run(5);
  const Outcome other = ablate("--arms unfrozen --seeds 2");
  EXPECT_EQ(other.code, 2);
  EXPECT_NE(other.err.find("out/unfrozen/seed-1/result.json: found the result of another run "
                           "configuration ("),
            std::string::npos)
      << other.err;
  EXPECT_EQ(calls().size(), 1U);
  // The same configuration, laid out in another way, is the same.
  write_text_file(folder_.path("run.json"),
                  R"({"version": 1, "format": "frazil.run", "epochs": 4, "micro_batch_size": 1,
                      "freeze": {"alpha": 0.5}, "batch_size": 8})");
  EXPECT_EQ(ablate("--arms unfrozen --seeds 1").code, 0);
  EXPECT_EQ(calls().size(), 1U);
}

TEST_F(AblateProgram, HandsOnWhereTheDevicesAreAndRemembersIt) {
  const Outcome outcome =
      ablate("--arms unfrozen --seeds 1 --json --procs 2 --device CUDA --gpus 3,00");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(calls().at(0).find(" --procs 2 --device cuda --gpus 3,0"), std::string::npos)
      << calls().at(0);
  const Json answer = Json::parse(outcome.out);
  EXPECT_EQ(answer["pairs"][0]["processes"], 2);
  EXPECT_EQ(answer["pairs"][0]["device"], "cuda");
  EXPECT_EQ(answer["pairs"][0]["gpus"], "3,0");
  const auto& notes = answer["notes"];
  EXPECT_NE(std::find(notes.begin(), notes.end(),
                      "devices in 2 processes; devices are of kind cuda: 3,0"),
            notes.end())
      << notes;
  for (const std::string other :
       {"", "--procs 2 --device cuda --gpus 0,3", "--device cuda --gpus 3,0", "--procs 2"}) {
    const Outcome refused = ablate("--arms unfrozen --seeds 1 " + other);
    EXPECT_EQ(refused.code, 2) << other;
    EXPECT_NE(refused.err.find("seed-1/result.json: found the result of another place (--procs 2 "
                               "--device cuda --gpus 3,0), expected that of this one (--procs "),
              std::string::npos)
        << refused.err;
  }
  EXPECT_EQ(calls().size(), 1U);
}

TEST_F(AblateProgram, PlansForTheProcessesThatItsRunsHave) {
  Cluster cluster = make_uniform_cluster(2, Bytes{1 << 30}, {Duration{1000}, BytesPerSecond{0}});
  cluster.commit_round = std::chrono::seconds(1);
  write_cluster(cluster, folder_.path("cluster.json"));
  const auto plan = [&] { return read_text_file(folder_.path("out/unfrozen/seed-1/plan.json")); };
  ASSERT_EQ(ablate("--arms unfrozen --seeds 1").code, 0);
  const std::string in_one = plan();
  fs::remove_all(folder_.path("out"));
  ASSERT_EQ(ablate("--arms unfrozen --seeds 1 --procs 2").code, 0);
  EXPECT_NE(plan(), in_one);
}

TEST_F(AblateProgram, EndsAsARunThatFailsAndGoesOnLater) {
  plant("all 2 fails 0\n");
  const Outcome failed = ablate("--arms unfrozen,all --seeds 2 --json");
  EXPECT_EQ(failed.code, 10);
  EXPECT_NE(failed.err.find("out/all/seed-2/run: found exit code 10 (\"frazil train: step 3: the "
                            "loss is not finite\"), expected a run that ends well"),
            std::string::npos)
      << failed.err;
  EXPECT_EQ(Json::parse(failed.out)["error"]["code"], 10);
  EXPECT_TRUE(has_result("all/seed-1") && has_result("unfrozen/seed-1"));
  EXPECT_FALSE(has_result("all/seed-2"));
  const std::size_t before = calls().size();
  plant("");
  EXPECT_EQ(ablate("--arms unfrozen,all --seeds 2").code, 0);
  EXPECT_TRUE(has_result("all/seed-2"));
  EXPECT_LE(calls().size(), before + 2);
}

TEST_F(AblateProgram, HandsASignalOnAndKeepsWhatHasFinished) {
  plant("unfrozen 2 hangs 0\n");
  const Outcome stopped = shell("bin/frazil-ablate " + kFiles +
                                "--arms unfrozen --seeds 2 --json & pid=$!; "
                                "while [ ! -e bin/hanging ]; do sleep 0.02; done; "
                                "kill -TERM $pid; wait $pid");
  EXPECT_EQ(stopped.code, 143);
  EXPECT_NE(stopped.err.find("frazil ablate: stopped by signal 15 after 1 of 2 runs"),
            std::string::npos)
      << stopped.err;
  EXPECT_EQ(Json::parse(stopped.out), Json({{"finished_pairs", 1}, {"pairs", 2}}));
  EXPECT_TRUE(has_result("unfrozen/seed-1"));
  EXPECT_FALSE(has_result("unfrozen/seed-2"));
}

// A process that has ended but that nobody has waited for has no command line any more.
TEST_F(AblateProgram, ThatIsKilledLeavesNoRunBehind) {
  plant("unfrozen 1 hangs 0\n");
  const Outcome killed = shell("bin/frazil-ablate " + kFiles +
                               "--arms unfrozen --seeds 1 --quiet & pid=$!; "
                               "while [ ! -s bin/hanging ]; do sleep 0.02; done; "
                               "train=$(cat bin/hanging); kill -KILL $pid; wait $pid; "
                               "runs() { grep -q . /proc/$train/cmdline 2>/dev/null; }; "
                               "for i in $(seq 500); do runs || exit 0; sleep 0.02; done; "
                               "kill -KILL $train; exit 1");
  EXPECT_EQ(killed.code, 0) << killed.err;
  // Its lock has gone with it.
  plant("");
  EXPECT_EQ(ablate("--arms unfrozen --seeds 1").code, 0);
}

TEST_F(AblateProgram, HasItsFolderAlone) {
  plant("unfrozen 1 hangs 0\n");
  const Outcome second =
      shell("bin/frazil-ablate " + kFiles +
            "--arms unfrozen --seeds 1 --quiet 2>first.txt & pid=$!; "
            "while [ ! -s bin/hanging ]; do sleep 0.02; done; "
            "timeout 60 bin/frazil-ablate --run run.json --profile model.json --cluster "
            "cluster.json --arms unfrozen --seeds 1 --out ./out/../out/; "
            "code=$?; kill -TERM $pid; wait $pid; exit $code");
  EXPECT_EQ(second.code, 2);
  EXPECT_EQ(second.err,
            "frazil ablate: ./out/../out/: found a folder in which another ablation runs, expected "
            "another folder, or the end of that one\n");
  EXPECT_EQ(calls().size(), 1U);
}

TEST_F(AblateProgram, LeavesNoFolderWhereNothingFits) {
  write_cluster(make_uniform_cluster(2, Bytes{1}, {Duration{1000}, BytesPerSecond{0}}),
                folder_.path("cluster.json"));
  const Outcome outcome = ablate("--arms unfrozen,all --seeds 4 --html p.html --pilot-out p.json");
  EXPECT_EQ(outcome.code, 3);
  EXPECT_NE(outcome.err.find("unfrozen does not fit, with which all arms are compared: "),
            std::string::npos)
      << outcome.err;
  EXPECT_NE(outcome.out.find("unfrozen does not fit: "), std::string::npos) << outcome.out;
  EXPECT_TRUE(calls().empty());
  for (const char* const name : {"out", "p.html", "p.json"}) {
    EXPECT_FALSE(fs::exists(folder_.path(name))) << name;
  }
}

TEST_F(AblateProgram, SaysWhyATrainingCannotBeStarted) {
  fs::remove(folder_.path("bin/frazil-train"));
  write_text_file(folder_.path("bin/frazil-train"), "#!/no/such/interpreter\n");
  fs::permissions(folder_.path("bin/frazil-train"), fs::perms::owner_all);
  const Outcome outcome = ablate("--arms unfrozen --seeds 1");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("frazil-train: found the error \"No such file or directory\" of exec, "
                             "expected a program to start"),
            std::string::npos)
      << outcome.err;
}

TEST_F(AblateProgram, AsksForTheRunsThatItsArmsAre) {
  plant("unfrozen 1 0.5 8\nall 1 0.5 3\n");  // 4 steps take 8 s, so 3 s are 1.5 steps
  const Outcome outcome = ablate("--seeds 1 --json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(calls().size(), 12U);
  const auto has = [&](const std::string& arm, const std::string& flag) {
    return call_of(arm).find(flag) != std::string::npos;
  };
  for (const std::string arm : {"one-device", "data-parallel", "unfrozen", "freeze", "shorter"}) {
    EXPECT_TRUE(has(arm, " --keep-plan")) << arm;
  }
  for (const std::string arm : {"pipe", "pipe-cache"}) {
    EXPECT_TRUE(has(arm, " --max-replicas ")) << arm;
  }
  for (const std::string arm : {"pipe-replicas", "all", "from-top", "random-masks"}) {
    EXPECT_FALSE(has(arm, "--max-replicas") || has(arm, "--keep-plan")) << arm;
  }
  EXPECT_TRUE(has("pipetransformer", " --planner pipetransformer"));
  const auto run_of = [&](const std::string& arm) {
    return Json::parse(read_text_file(folder_.path("out/" + arm + "/seed-1/run.json")));
  };
  EXPECT_TRUE(has("shorter", " --steps 2 "));
  EXPECT_FALSE(has("all", "--steps"));
  EXPECT_EQ(run_of("shorter")["freeze"]["policy"]["kind"], "none");
  EXPECT_EQ(run_of("all")["epochs"], 4);
  EXPECT_EQ(run_of("all")["freeze"], Json({{"alpha", 0.5}}));
  const FreezeTrace masks = read_freeze_trace(folder_.path("out/from-top/seed-1/masks.jsonl"));
  ASSERT_EQ(masks.events.size(), 2U);
  EXPECT_EQ(std::get<MaskEvent>(masks.events[1].what).mask.text(), "1001");
  const Json answer = Json::parse(outcome.out);
  EXPECT_EQ(answer["arms"].size(), 12U);
  EXPECT_EQ(answer["pairs"].size(), 12U);
  for (const Json& pair : answer["pairs"]) EXPECT_EQ(pair["frazil_version"], FRAZIL_VERSION);
  for (const Json& arm : answer["arms"]) {
    if (arm["arm"] == "shorter") {
      EXPECT_NEAR(arm["more_time_percent"].get<double>(), 100.0 / 3, 1e-9);
    }
    if (arm["arm"] == "all") {
      EXPECT_NEAR(arm["speed_over_unfrozen"]["geometric_mean"], 8.0 / 3, 1e-9);
    }
  }
}

}  // namespace
}  // namespace frazil
