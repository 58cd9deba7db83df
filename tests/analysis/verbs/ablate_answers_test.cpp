// What `frazil ablate` answers, predicts and refuses.

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "profiles/text_file.h"
#include "tests/analysis/verbs/ablate_program.h"
#include "tests/support/write_cluster.h"
#include "tests/support/write_freeze_trace.h"
#include "traces/freeze_trace.h"

namespace frazil {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

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
