// `frazil ablate` as a process, beside a stand-in for `frazil train` that answers what is planted
// (stand_in_train.sh): which runs it asks for, what it keeps, and how it ends.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "profiles/model_profile_json.h"
#include "profiles/text_file.h"
#include "tests/support/program_folder.h"
#include "tests/support/sample_models.h"
#include "tests/support/write_cluster.h"
#include "tests/support/write_freeze_trace.h"
#include "traces/freeze_trace.h"

namespace frazil {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

const std::string kFiles = "--run run.json --profile model.json --cluster cluster.json --out out ";

class AblateProgram : public testing::Test {
 protected:
  void SetUp() override {
    const fs::path bin = folder_.path("bin");
    fs::create_directories(bin);
    fs::copy_file(fs::path(FRAZIL_PROGRAM_FOLDER) / "frazil-ablate", bin / "frazil-ablate");
    // The copy may be run as the script may.
    fs::copy_file(fs::path(FRAZIL_SOURCE_FOLDER) / "tests/analysis/verbs/stand_in_train.sh",
                  bin / "frazil-train");
    plant("");
    const Duration time = std::chrono::milliseconds(1);
    write_model_profile(make_chain(4, time, time, time), folder_.path("model.json"));
    write_cluster(make_uniform_cluster(2, Bytes{1 << 30}, {Duration{1000}, BytesPerSecond{0}}),
                  folder_.path("cluster.json"));
    write_run(4);
  }
  void plant(const std::string& lines) const {
    write_text_file(folder_.path("bin/planted"), lines);
  }
  void write_run(int epochs) const {
    write_text_file(folder_.path("run.json"),
                    R"({"format": "frazil.run", "version": 1, "batch_size": 8,
                        "micro_batch_size": 1, "freeze": {"alpha": 0.5}, "epochs": )" +
                        std::to_string(epochs) + "}");
  }
  Outcome shell(const std::string& command) const {
    const int status = std::system(
        ("cd '" + folder_.path("") + "' && (" + command + ") >out.txt 2>err.txt").c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_text_file(folder_.path("out.txt")),
            read_text_file(folder_.path("err.txt"))};
  }
  Outcome ablate(const std::string& flags) const {
    return shell("bin/frazil-ablate " + kFiles + flags);
  }
  // Returns the command lines of the runs so far.
  std::vector<std::string> calls() const {
    std::vector<std::string> lines;
    if (!fs::exists(folder_.path("bin/calls"))) return lines;
    std::istringstream text(read_text_file(folder_.path("bin/calls")));
    for (std::string line; std::getline(text, line);) lines.push_back(line);
    return lines;
  }
  std::string call_of(const std::string& arm) const {
    for (const std::string& call : calls()) {
      if (call.find("out/" + arm + "/") != std::string::npos) return call;
    }
    return "";
  }
  bool has_result(const std::string& pair) const {
    return fs::exists(folder_.path("out/" + pair + "/result.json"));
  }

  const ProgramFolder folder_{std::string("ablate-") +
                              testing::UnitTest::GetInstance()->current_test_info()->name()};
};

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

TEST_F(AblateProgram, AnswersWhatWasPlanted) {
  std::string lines;
  for (const std::string seed : {"1", "2", "3"}) {
    lines += "unfrozen " + seed + " 0.90 8\nall " + seed + " 0.89" + seed + " 4\nshorter " + seed +
             " 0.70 4\n";
  }
  plant(lines);
  const std::string flags =
      "--arms unfrozen,all,shorter --seeds 3 --html page.html --csv runs.csv ";
  Json answer = Json::parse(ablate(flags + "--json").out);
  EXPECT_EQ(answer["freezing_brought"], "something");
  EXPECT_EQ(answer["arms"][1]["verdict"], "non-inferior");
  EXPECT_EQ(answer["arms"][1]["beats_shorter"], true);
  EXPECT_EQ(answer["arms"][2]["verdict"], "inferior by more than the margin");
  const std::string page = read_text_file(folder_.path("page.html"));
  for (const char* words : {"<h1>Ablation</h1>", ">Speed over unfrozen<", ">2.00x<",
                            "non-inferior, better than shorter", ">Every run<"}) {
    EXPECT_NE(page.find(words), std::string::npos) << words;
  }
  // Page and picture show the same charts, the picture alone and under the title asked for.
  ASSERT_EQ(ablate(flags + "--quiet --svg a.svg --title 'Digits & <ink>'").code, 0);
  const std::string picture = read_text_file(folder_.path("a.svg"));
  EXPECT_EQ(picture.rfind("<svg xmlns=", 0), 0U);
  EXPECT_EQ(picture.find("<script"), std::string::npos);
  EXPECT_NE(read_text_file(folder_.path("page.html")).find("<h1>Digits &amp; &lt;ink&gt;</h1>"),
            std::string::npos);
  for (const char* words :
       {">Digits &amp; &lt;ink&gt;<", ">Speed over unfrozen<", ">Accuracy less that of unfrozen<",
        ">3 seeds; accuracy on 400 test samples; margin 1 point<",
        ">A bar is a mean over the seeds, a dot is a seed, a hollow diamond is what was "}) {
    EXPECT_NE(picture.find(words), std::string::npos) << words;
  }
  for (std::size_t at = picture.find("<g><title>"); at != std::string::npos;
       at = picture.find("<g><title>", at + 1)) {
    const std::string row = picture.substr(at, picture.find('\n', at) - at);
    EXPECT_NE(page.find(row), std::string::npos) << row;
  }
  // Under one seed a bar's end is all that there is.
  ASSERT_EQ(ablate("--arms unfrozen,all --seeds 1 --quiet --svg one.svg").code, 0);
  const std::string dot = "m-2.5 0a2.5";
  EXPECT_EQ(read_text_file(folder_.path("one.svg")).find(dot), std::string::npos);
  EXPECT_NE(picture.find(dot), std::string::npos);
  const std::string rows = read_text_file(folder_.path("runs.csv"));
  EXPECT_EQ(std::count(rows.begin(), rows.end(), '\n'), 10);
  EXPECT_EQ(rows.find("arm,seed,accuracy,loss,wall_time_ns,"), 0U) << rows;
  EXPECT_NE(rows.find("\nall,2,0.892,1,4000000000,8000000000,4,0,0,,ab\n"), std::string::npos)
      << rows;
  // A tighter margin, and the verdict is another; nothing runs for it.
  answer = Json::parse(ablate(flags + "--json --margin 0.5").out);
  EXPECT_EQ(answer["arms"][1]["verdict"], "inferior by more than the margin");
  EXPECT_EQ(calls().size(), 9U);
}

// An epoch is one batch of 8 samples: half of the two blocks between embedding and head freezes
// before the first step, and the other before the second.
TEST_F(AblateProgram, PredictsBeforeAnyRunWhatTheConfigurationTells) {
  const std::string arms = "--arms unfrozen,freeze,all,pipetransformer,shorter --seeds 1 ";
  const Outcome outcome = ablate(arms + "--samples 8 --json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::size_t told = outcome.err.find("predicted from the run configuration: unfrozen ");
  ASSERT_NE(told, std::string::npos) << outcome.err;
  const std::size_t estimate = outcome.err.find("5 of 5 runs to go, about ");
  ASSERT_NE(estimate, std::string::npos) << outcome.err;
  EXPECT_LT(told, estimate) << outcome.err;
  EXPECT_EQ(outcome.err.find("unknown length"), std::string::npos) << outcome.err;
  const Json answer = Json::parse(outcome.out);
  // The same question, asked with a forecast that was written by hand.
  FreezeTrace trace;
  trace.blocks.assign(4, "block");
  trace.steps = 4;
  trace.events.push_back({0, MaskEvent{FreezeMask::parse("0011", "test", 1)}});
  trace.events.push_back({1, MaskEvent{FreezeMask::parse("0001", "test", 1)}});
  write_freeze_trace(trace, folder_.path("masks.jsonl"));
  const Outcome simulated = shell(
      "bin/frazil-ablate --simulate --profile model.json --cluster cluster.json --forecast "
      "masks.jsonl --batch 8 --micro-batch 1 --samples 8 --cache-memory 1GiB --json");
  ASSERT_EQ(simulated.code, 0) << simulated.err;
  const Json twin = Json::parse(simulated.out);
  for (const Json& arm : answer["arms"]) {
    if (arm["arm"] == "shorter") {
      EXPECT_EQ(arm["predicted"]["from"], "time of all");
      continue;
    }
    EXPECT_EQ(arm["predicted"]["from"], "configuration") << arm;
    const auto row = std::find_if(twin["arms"].begin(), twin["arms"].end(),
                                  [&](const Json& each) { return each["arm"] == arm["arm"]; });
    EXPECT_EQ(arm["predicted"]["total_ns"], (*row)["time_ns"]) << arm << *row;
  }
  EXPECT_EQ(answer["compute_limit_ns"], twin["compute_limit_ns"]);
  EXPECT_EQ(answer["compute_limit_caches"], true);
  const std::string notes = answer["notes"].dump();
  for (const char* words :
       {"predicted without any run, transitions charged as plan --forecast",
        "limit by compute: ", "so that it is left out of errors and order: shorter",
        // The stand-in records that nothing has frozen.
        "and those of freeze with seed 1 were others"}) {
    EXPECT_NE(notes.find(words), std::string::npos) << words << notes;
  }
  // Where nobody says how long an epoch is, the first run tells it; the predictions are the same.
  fs::remove_all(folder_.path("out"));
  const Outcome later = ablate(arms + "--json");
  EXPECT_NE(later.err.find("nothing is predicted before a run has ended"), std::string::npos)
      << later.err;
  const Json same = Json::parse(later.out);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(same["arms"][i]["predicted"], answer["arms"][i]["predicted"]);
  }
  EXPECT_NE(same["notes"].dump().find("from the configuration and the length of the runs"),
            std::string::npos);
}

TEST_F(AblateProgram, PredictsFromRecordedMasksWherePoliciesReadSignals) {
  write_text_file(folder_.path("run.json"),
                  R"({"format": "frazil.run", "version": 1, "batch_size": 8, "micro_batch_size": 1,
                      "epochs": 4, "freeze": {"policy": {"kind": "plasticity"}}})");
  const Outcome outcome = ablate("--arms unfrozen,all --seeds 1 --samples 8 --json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("predicted from the run configuration: unfrozen "), std::string::npos)
      << outcome.err;
  const Json answer = Json::parse(outcome.out);
  EXPECT_EQ(answer["arms"][0]["predicted"]["from"], "configuration");
  EXPECT_EQ(answer["arms"][1]["predicted"]["from"], "recorded masks");
  EXPECT_NE(answer["notes"].dump().find("predicted from masks and transition times of a run: all"),
            std::string::npos)
      << answer["notes"];
}

TEST_F(AblateProgram, RefusesSamplesThatItsRunsDoNotHave) {
  const Outcome outcome = ablate("--arms unfrozen --seeds 2 --samples 9");
  EXPECT_EQ(outcome.code, 2);
  const std::string sentence =
      "--samples: found 9, with which a run has 8 steps, expected the samples of an epoch: "
      "unfrozen with seed 1 has 4 steps\n";
  EXPECT_NE(outcome.err.find(sentence), std::string::npos) << outcome.err;
  EXPECT_EQ(calls().size(), 1U);
  EXPECT_TRUE(has_result("unfrozen/seed-1")) << "what has finished is kept";
  EXPECT_NE(ablate("--arms unfrozen --seeds 2 --samples 9").err.find(sentence), std::string::npos);
  EXPECT_EQ(calls().size(), 1U);
  EXPECT_EQ(ablate("--arms unfrozen --seeds 2 --samples 8").code, 0);
}

// s_d of 0, 2, 0, 2 points is sqrt(4 / 3), and 6.18 x 4 / 3 = 8.24.
TEST_F(AblateProgram, MakesThePilotOfALaterOne) {
  std::string lines;
  for (const int seed : {101, 102, 103, 104}) {
    lines += fmt::format("all {} 0.{} 4\nunfrozen {} 0.5 8\n", seed, seed % 2 == 0 ? 52 : 50, seed);
  }
  plant(lines);
  const Outcome pilot =
      ablate("--arms unfrozen,all --seed-list 101,102,103,104 --pilot-out p.json");
  ASSERT_EQ(pilot.code, 0) << pilot.err;
  const Outcome later = ablate("--arms unfrozen --pilot p.json --json");
  ASSERT_EQ(later.code, 0) << later.err;
  const Json answer = Json::parse(later.out);
  EXPECT_EQ(answer["seeds_asked_by_pilot"], 9);
  EXPECT_EQ(answer["seeds"], Json({1, 2, 3, 4, 5, 6, 7, 8, 9}));
  for (const auto& [flags, said] :
       {std::pair("--arms unfrozen --seeds 4 --pilot-out q.json", "--pilot-out without all"),
        {"--arms unfrozen,all --seeds 3 --pilot-out q.json", "--pilot-out of 3 seeds"},
        {"--arms unfrozen,all --seeds 4 --pilot-out run.json", "run.json"}}) {
    const Outcome refused = ablate(flags);
    EXPECT_EQ(refused.code, 2) << flags;
    EXPECT_NE(refused.err.find(said), std::string::npos) << refused.err;
  }
  write_run(5);
  EXPECT_NE(ablate("--arms unfrozen --pilot p.json")
                .err.find("p.json: found the pilot of another run configuration ("),
            std::string::npos);
}

TEST_F(AblateProgram, TellsWhichArmsDoNotFit) {
  // A layer takes 4,000 B, besides activations: one device has no room for four.
  write_cluster(make_uniform_cluster(2, Bytes{15'000}, {Duration{1000}, BytesPerSecond{0}}),
                folder_.path("cluster.json"));
  const Outcome outcome = ablate("--arms one-device,data-parallel,unfrozen --seeds 1");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(calls().size(), 1U);
  EXPECT_NE(outcome.out.find("one-device does not fit: "), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("data-parallel does not fit: "), std::string::npos);
}

TEST_F(AblateProgram, RefusesWhatCannotBeJudged) {
  const auto refusal = [&](const std::string& flags) {
    const Outcome outcome = ablate(flags);
    EXPECT_EQ(outcome.code, 2) << flags;
    return outcome.err;
  };
  EXPECT_NE(refusal("--arms all").find("--arms without unfrozen"), std::string::npos);
  EXPECT_NE(refusal("--arms unfrozen,from-top").find("from-top without all"), std::string::npos);
  EXPECT_NE(refusal("--arms unfrozen,unfrozen").find("unfrozen twice"), std::string::npos);
  EXPECT_NE(refusal("--arms unfrozn").find("unfrozen"), std::string::npos);
  EXPECT_NE(refusal("--margin 0").find("--margin 0"), std::string::npos);
  EXPECT_NE(refusal("--html out/a.html").find("--html out/a.html within the folder of --out"),
            std::string::npos);
  EXPECT_NE(refusal("--svg run.json").find("--svg run.json for the file of --run"),
            std::string::npos);
  EXPECT_NE(refusal("--svg a.svg --html a.svg").find("for the file of --"), std::string::npos);
  EXPECT_NE(refusal("--svg no/a.svg").find("folder no does not exist"), std::string::npos);
  EXPECT_NE(refusal("--title Digits").find("--title without --html and --svg"), std::string::npos);
  EXPECT_NE(refusal("--procs 3").find("--procs: found 3 processes for 2 devices"),
            std::string::npos);
  EXPECT_NE(refusal("--gpus 0").find("--gpus without --device cuda"), std::string::npos);
  EXPECT_NE(refusal("--device cuda --gpus 0,0").find("--gpus"), std::string::npos);
  EXPECT_NE(refusal("--device gpu").find("--device gpu"), std::string::npos);
  EXPECT_NE(refusal("--seeds 2 --seed-list 4").find("--seeds beside --seed-list"),
            std::string::npos);
  write_text_file(
      folder_.path("pilot.json"),
      R"({"format": "frazil.ablation_pilot", "version": 1, "run_hash": "ab", "differences": [
                      {"seed": 4, "points": 0.1}, {"seed": 5, "points": 0.3},
                      {"seed": 6, "points": 0.2}, {"seed": 7, "points": 0.1}]})");
  EXPECT_NE(refusal("--pilot pilot.json --seed-list 3,4").find("seed 4 in --seed-list"),
            std::string::npos);
  fs::create_directories(folder_.path("out/notes"));
  EXPECT_NE(refusal("").find("out: found a folder with notes, expected a new or an empty one"),
            std::string::npos);
  fs::remove(folder_.path("out/notes"));
  write_text_file(folder_.path("run.json"), R"({"format": "frazil.run", "version": 1})");
  EXPECT_NE(refusal("").find("run.json: found no freezing"), std::string::npos);
  write_text_file(folder_.path("run.json"), R"({"format": "frazil.run", "version": 1,
                                                "batch_growth": "with-pipelines"})");
  EXPECT_NE(refusal("").find("run.json: found a batch that grows with the pipelines"),
            std::string::npos);
  EXPECT_TRUE(calls().empty());
}

}  // namespace
}  // namespace frazil
