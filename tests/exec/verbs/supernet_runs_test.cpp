// A supernet is searched in by distillation, in each of Pipe-BD's ways: data parallel and
// layerwise, block after block; teacher relaying with and without waits; and by the plan that is
// found.

#include <gtest/gtest.h>

#include <set>

#include "exec/checkpoint/journal_lines.h"
#include "tests/exec/verbs/distilled_folder.h"

namespace frazil {
namespace {

using Json = nlohmann::json;

const Json kSearchShape = {{"image", 4},        {"stem", 4}, {"widths", {4, 6}}, {"cells", {2, 1}},
                           {"strides", {1, 2}}, {"head", 8}, {"classes", 3}};
constexpr int kSearchEpochs = 2;
constexpr int kSearchEpochSteps = 20;
constexpr int kSearchSteps = kSearchEpochs * kSearchEpochSteps;

Json of_kind(const std::string& kind) {
  Json model = kSearchShape;
  model["kind"] = kind;
  return model;
}

class SupernetRuns : public DistilledFolder {
 protected:
  void SetUp() override {
    write_run("teacher.json", of_kind("mobilenet"), {{"epochs", 1}});
    profile("teacher.json");
    answer("train", "--run teacher.json --profile model.json --cluster cluster.json --out taught");
    write_search({});
    profile("run.json");
  }

  // Writes a search of 20 steps in an epoch, which teaches the active blocks of a mask alone.
  void write_search(const std::string& mask) const {
    const Json model = {{"kind", "distillation"},
                        {"teacher", of_kind("mobilenet")},
                        {"teacher_weights", "taught/weights.safetensors"},
                        {"student", of_kind("supernet")}};
    Json more = {
        {"epochs", kSearchEpochs},
        {"optimizer", {{"learning_rate", 0.01}, {"schedule", "constant"}}},
        {"data",
         {{"kind", "synthetic"}, {"train_samples", 16 * kSearchEpochSteps}, {"test_samples", 32}}}};
    if (!mask.empty()) more["freeze"] = {{"policy", {{"kind", "static"}, {"mask", mask}}}};
    write_run("run.json", model, more);
  }

  // Trains, and expects every step of both epochs to have been taken.
  Json search(const std::string& out, const std::string& flags) const {
    SCOPED_TRACE(out);
    const Json told = train(flags + " --checkpoint-every 20 --out " + out + " --force");
    EXPECT_EQ(list_steps(out), all_steps());
    const std::string trace = read_text_file(path(out + "/trace.jsonl"));
    EXPECT_EQ(Json::parse(trace.substr(0, trace.find('\n'))).at("steps"), kSearchSteps);
    return told;
  }
  static std::set<Step> all_steps() {
    std::set<Step> steps;
    for (Step step = 0; step < kSearchSteps; ++step) steps.insert(step);
    return steps;
  }
  // The steps of which the journal has a loss.
  std::set<Step> list_steps(const std::string& out) const {
    std::set<Step> steps;
    const std::string text = read_text_file(path(out + "/checkpoints/steps.journal"));
    for (std::size_t at = kJournalLineBytes; at < text.size(); at += kJournalLineBytes) {
      const auto line = parse_journal_line(std::string_view(text).substr(at, kJournalLineBytes));
      if (line && line->kind == JournalKind::kStep) steps.insert(line->step);
    }
    return steps;
  }
};

// Pipe-BD's code ends an epoch of its data parallel and layerwise baselines after 11 steps.
TEST_F(SupernetRuns, TakeEveryStepOfAnEpochAndEndWithTheSameBitsInEveryWay) {
  const Json found = search("found", "");
  for (const int steps_ahead : {0, 7}) {
    write_plan({{0, 7}}, steps_ahead);
    const Json relayed = search("relayed", "--plan plan.json --keep-plan");
    EXPECT_EQ(relayed.at("state_hash"), found.at("state_hash")) << steps_ahead << " ahead";
    EXPECT_EQ(relayed.at("loss"), found.at("loss"));
  }
  EXPECT_EQ(search("processes", "--procs 2").at("state_hash"), found.at("state_hash"));
  ASSERT_FALSE(train("--checkpoint-every 7 --out cut --steps 21").is_null());
  const Json more = answer("train", "--resume cut --steps " + std::to_string(kSearchSteps));
  EXPECT_EQ(more.at("state_hash"), found.at("state_hash")) << "resumed";
  const std::vector<std::pair<std::string, std::vector<std::string>>> blocks{
      {"1001", {"stem.", "stage1."}}, {"0101", {"stage2."}}, {"0011", {"head.", "classifier."}}};
  for (const auto& [mask, names] : blocks) {
    write_search(mask);
    for (const bool is_parallel : {true, false}) {
      if (!is_parallel && mask != blocks.front().first) continue;  // one block alone will do
      write_plan(is_parallel ? std::vector<std::vector<int>>{{0}, {0}}
                             : std::vector<std::vector<int>>{{0}});
      (void)search("alone", "--plan plan.json --keep-plan");
      for (const std::string& name : names) expect_equal("found", "alone", name);
    }
  }
}

}  // namespace
}  // namespace frazil
