// A distillation as a user makes one: a teacher is trained, its weights teach a student, whose own
// weights are left and go on.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "tests/exec/verbs/distilled_folder.h"
#include "traces/freeze_trace.h"

namespace frazil {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

const Json kTeacher = {{"kind", "mlp"}, {"image", 4}, {"widths", {24, 16}}, {"classes", 3}};
const Json kStudent = {{"kind", "mlp"}, {"image", 4}, {"widths", {12, 24, 16}}, {"classes", 3}};
const Json kBlocks = {{{"teacher", "layer1"}, {"student", "layer2"}},
                      {{"teacher", "layer2"}, {"student", "layer3"}},
                      "head"};

class DistilledRuns : public DistilledFolder {
 protected:
  // Trains the teacher on its own.
  void SetUp() override {
    write_run("teacher.json", kTeacher);
    profile("teacher.json");
    answer("train", "--run teacher.json --profile model.json --cluster cluster.json --out taught");
    write_run("run.json", distillation());
    profile("run.json");
  }

  static Json distillation() {
    return {{"kind", "distillation"},
            {"teacher", kTeacher},
            {"teacher_weights", "taught/weights.safetensors"},
            {"student", kStudent},
            {"blocks", kBlocks}};
  }
  void expect_refusal(const std::string& flags, const std::string& part) const {
    SCOPED_TRACE(flags);
    const Outcome outcome = folder_.run("train", flags);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    EXPECT_NE(outcome.err.find(part), std::string::npos) << outcome.err;
  }
};

// The student's own run, with a learning rate of nothing, evaluates what was kept.
TEST_F(DistilledRuns, KeepAStudentThatIsANetworkOfItsOwn) {
  const Json distilled = train("--out distilled");
  write_run("student.json", kStudent,
            {{"init_from", "distilled/weights.safetensors"},
             {"epochs", 1},
             {"optimizer",
              {{"groups", {{{"match", "*"}, {"weight_decay", 0}, {"learning_rate_scale", 0}}}}}}});
  profile("student.json");
  const Json still =
      answer("train", "--run student.json --profile model.json --cluster cluster.json --out still");
  EXPECT_EQ(still.at("accuracy"), distilled.at("accuracy"));
  EXPECT_EQ(still.at("loss"), distilled.at("loss"));
}

TEST_F(DistilledRuns, HaveTheSameBitsRelayedDecoupledAndOverProcesses) {
  const Json searched = train("--out searched");
  for (const int steps_ahead : {0, 3}) {
    write_plan({{0, 4}}, steps_ahead);
    const Json relayed = train("--plan plan.json --keep-plan --out relayed --force");
    EXPECT_EQ(relayed.at("state_hash"), searched.at("state_hash")) << steps_ahead << " ahead";
  }
  EXPECT_EQ(train("--procs 2 --out processes").at("state_hash"), searched.at("state_hash"));
}

TEST_F(DistilledRuns, GoOnHereAndElsewhereWithTheBitsOfOneThatNeverEnded) {
  write_run("run.json", distillation(),
            {{"optimizer", {{"kind", "adamw"}, {"learning_rate", 0.01}, {"cosine", false}}}});
  const Json whole = train("--out whole");
  (void)train("--out cut --checkpoint-every 5 --steps 10");
  fs::create_directories(path("elsewhere"));
  fs::copy(path("cut"), path("elsewhere/cut"), fs::copy_options::recursive);
  for (const char* const run : {"cut", "elsewhere/cut"}) {
    const Json more = answer("train", std::string("--resume ") + run + " --steps 24");
    EXPECT_EQ(more.at("resumed_from_step"), 10);
    EXPECT_EQ(more.at("state_hash"), whole.at("state_hash")) << run;
  }
  // Nothing is left to do.
  EXPECT_EQ(answer("train", "--resume cut --steps 24").at("resumed_from_step"), 24);
}

// What is learnt would follow from the plan that a resumed run takes.
TEST_F(DistilledRuns, KeepNoCheckpointsWhereSlicesNormaliseByThemselves) {
  write_run("run.json", distillation(), {{"reduction", "fast"}, {"local_statistics", true}});
  expect_refusal(
      "--run run.json --profile model.json --cluster cluster.json --out cut --checkpoint-every 5",
      "slices that normalise by statistics of their own");
}

// Each block by a run of its own, as data parallel distillation takes them.
TEST_F(DistilledRuns, HaveTheBitsOfBlocksThatAreTaughtOneByOne) {
  (void)train("--out together");
  const std::vector<std::pair<std::string, std::vector<std::string>>> blocks{
      {"1001", {"layers.0", "layers.1"}}, {"0101", {"layers.2"}}, {"0011", {"classifier"}}};
  for (const auto& [mask, names] : blocks) {
    write_run("run.json", distillation(),
              {{"freeze", {{"policy", {{"kind", "static"}, {"mask", mask}}}}}});
    (void)train("--out alone --force");
    for (const std::string& name : names) expect_equal("together", "alone", name);
  }
}

// Three blocks that train: one between the first and the last of them.
TEST_F(DistilledRuns, RefuseToCountTheBlockOfTheLastLossAmongThoseThatFreeze) {
  const std::string run = "--run run.json --profile model.json --cluster cluster.json --out out";
  for (const char* const kind : {"static", "random"}) {
    const std::string key = kind == std::string("static") ? "frozen_layers" : "active_layers";
    write_run("run.json", distillation(), {{"freeze", {{"policy", {{"kind", kind}, {key, 2}}}}}});
    expect_refusal(run, "run.json: found \"" + key + "\": 2, expected at most 1");
    EXPECT_FALSE(fs::exists(path("out")));
    write_run("run.json", distillation(), {{"freeze", {{"policy", {{"kind", kind}, {key, 1}}}}}});
    answer("train", run + " --check");
  }
}

// A stage whose devices share the samples of each micro-batch: for reductions in mode fast, and
// layers that mix no samples.
TEST_F(DistilledRuns, AreCheckedAgainstAPlanAsTheyWouldBeTrained) {
  const auto expect_infeasible = [&](const std::string& part) {
    write_plan({{0}});
    Json plan = Json::parse(read_text_file(path("plan.json")));
    Json& stage = plan["pipelines"][0]["stages"][0];
    stage["devices"] = {0, 1};
    stage["axis"] = "samples";
    plan["reduction"] = Json::parse(read_text_file(path("run.json"))).value("reduction", "exact");
    write_text_file(path("plan.json"), plan.dump());
    for (const char* const end : {"--check", "--out out"}) {
      const Outcome outcome =
          folder_.run("train", std::string("--run run.json --profile model.json --cluster "
                                           "cluster.json --plan plan.json --quiet ") +
                                   end);
      EXPECT_EQ(outcome.code, 3) << end;
      EXPECT_NE(outcome.err.find(part), std::string::npos) << outcome.err;
      EXPECT_FALSE(fs::exists(path("out/weights.safetensors")));
    }
  };
  expect_infeasible("shares micro-batches by samples, which goes with the reduction fast");
  write_run(
      "run.json",
      {{"kind", "vgg"}, {"image", 8}, {"widths", {4, 8}}, {"convolutions", 1}, {"classes", 3}},
      {{"reduction", "fast"}});
  profile("run.json");
  expect_infeasible("mixes them in training");
}

TEST_F(DistilledRuns, SayWhatLiesWhereTheTeachersWeightsShould) {
  const std::string run = "--run run.json --profile model.json --cluster cluster.json --out out";
  Json other = distillation();
  other["teacher_weights"] = "taught";
  write_run("run.json", other);
  expect_refusal(run,
                 "taught: found a folder, expected a safetensors file, as \"teacher_weights\" of "
                 "the run names it");
  other["teacher_weights"] = "absent.safetensors";
  write_run("run.json", other);
  expect_refusal(run, "absent.safetensors: found no such file, expected a safetensors file");
}

TEST_F(DistilledRuns, RefuseAMaskUnderWhichNothingTrains) {
  write_run("run.json", distillation(),
            {{"freeze", {{"policy", {{"kind", "static"}, {"mask", "0001"}}}}}});
  expect_refusal("--run run.json --profile model.json --cluster cluster.json --out out",
                 "run.json: found mask \"0001\", under which nothing trains, expected one that");
}

// The block of the last loss has no parameters, so FreezeOut leaves the one before it to train to
// the end.
TEST_F(DistilledRuns, TrainTheirLastBlockToTheEndWhereOthersFreeze) {
  write_run("run.json", distillation(),
            {{"freeze", {{"policy", {{"kind", "freezeout"}, {"t0", 0.4}, {"power", 1}}}}}});
  (void)train("--out frozen");
  const FreezeTrace trace = read_freeze_trace(path("frozen/trace.jsonl"));
  std::vector<std::string> masks;
  for (const FreezeEvent& event : trace.events) {
    if (const auto* const decided = std::get_if<MaskEvent>(&event.what)) {
      masks.push_back(decided->mask.text());
    }
  }
  EXPECT_EQ(masks, (std::vector<std::string>{"1111", "0111", "0011"}));
}

TEST_F(DistilledRuns, RefuseToWriteOverTheirTeacher) {
  const std::string before = read_text_file(path("taught/weights.safetensors"));
  expect_refusal("--run run.json --profile model.json --cluster cluster.json --out taught --force",
                 "teacher_weights");
  EXPECT_EQ(read_text_file(path("taught/weights.safetensors")), before);
  Json other = distillation();
  other["teacher_weights"] = "run.json";
  write_run("run.json", other);
  expect_refusal("--run run.json --profile model.json --cluster cluster.json --out out",
                 "run.json: found");
  write_run("run.json", distillation(), {{"data", {{"kind", "digits"}}}});
  expect_refusal("--run run.json --profile model.json --cluster cluster.json --out out",
                 "$.model.student");
}

}  // namespace
}  // namespace frazil
