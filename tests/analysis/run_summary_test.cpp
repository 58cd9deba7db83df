#include "analysis/run_summary.h"

#include <gtest/gtest.h>

#include "analysis/html/html_report.h"
#include "analysis/run_answer.h"
#include "profiles/error.h"
#include "profiles/text_file.h"
#include "tests/analysis/sample_runs.h"

namespace frazil {
namespace {

using namespace std::chrono_literals;

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

// Makes a run of epochs of five steps, of which the last is short and so is not measured.
ReportRun make_run(int epochs) {
  ReportRun run = sample_run("run");
  run.phases.resize(1);
  run.trace.steps = Step{5} * epochs;
  run.trace.events = {{0, PlanEvent{"phase-0/plan.json", "plan", 10ms}},
                      {0, TransitionEvent{1ms, 1ms, 1ms, Bytes{0}}}};
  for (int epoch = 0; epoch < epochs; ++epoch) {
    const Step first = Step{5} * epoch;
    add_event(run.trace, {first, CostEvent{4, 32, 40ms}});
    add_event(run.trace, {first + 5, EvalEvent{epoch + 1, 0.5, 0.5, 0.5}});
  }
  return run;
}

TEST(RunSummary, SaysWhichStepsAreNotInItsMeans) {
  const std::string three =
      "3 of the 15 steps are not in these means: shorter ones, each the last of its epoch";
  const RunSummary run = summarize("run", make_run(3).trace);
  EXPECT_EQ(run.steps, 12);
  EXPECT_EQ(tell_unmeasured(run), three);
  EXPECT_TRUE(has(to_text(run), "\n" + three + "\n")) << to_text(run);
  EXPECT_TRUE(has(to_json({run}), "\"unmeasured_steps\": 3"));
  EXPECT_TRUE(has(to_html("title", {}, {make_run(3)}), three + "."));
  EXPECT_EQ(tell_unmeasured(summarize("run", make_run(1).trace)),
            "1 of the 5 steps is not in these means: a shorter one, the last of its epoch");
}

TEST(RunSummary, TellsTheLastValidationWhereThereIsOne) {
  ReportRun run = make_run(2);
  EXPECT_FALSE(has(to_text(summarize("run", run.trace)), "validation"));
  EXPECT_FALSE(has(to_json({summarize("run", run.trace)}), "validation"));
  run.trace.steps = 11;
  add_event(run.trace, {11, EvalEvent{3, 0.5, 0.5, 0.5, PartScore{0.25, 0.875}}});
  const RunSummary summary = summarize("run", run.trace);
  EXPECT_TRUE(has(to_text(summary), ", accuracy 50.00 %, validation accuracy 87.50 %\n"));
  EXPECT_TRUE(has(to_json({summary}), "\"validation_loss\": 0.25"));
  EXPECT_TRUE(has(to_json({summary}), "\"validation_accuracy\": 0.875"));
}

TEST(RunSummary, SaysByAPhaseThatItsPredictionIsExtrapolated) {
  ReportRun run = sample_run("run");
  const std::string note = std::string(explain_extrapolated()) + "\n";
  RunSummary summary = summarize("run", run.trace);
  EXPECT_FALSE(has(to_text(summary), "extrapolated"));
  EXPECT_FALSE(has(to_json({summary}), "extrapolated"));
  events_of<PlanEvent>(run.trace).at(1)->extrapolated = true;
  summary = summarize("run", run.trace);
  EXPECT_FALSE(summary.phases.at(0).extrapolated);
  EXPECT_TRUE(summary.phases.at(1).extrapolated);
  const std::string text = to_text(summary);
  EXPECT_TRUE(has(text, "             1280.0  extrapolated\n" + note)) << text;
  EXPECT_EQ(text.find("extrapolated"), text.rfind("  extrapolated\n") + 2) << "one phase alone";
  EXPECT_TRUE(has(to_json({summary}), "\"extrapolated\": true"));
}

TEST(RunSummary, CountsARunThatWasResumedFromItsFirstStep) {
  FreezeTrace trace = make_run(3).trace;
  for (FreezeEvent& event : trace.events) event.step += 100;
  trace.steps += 100;
  EXPECT_EQ(summarize("run", trace).unmeasured_steps, 3);
  // No reason is given if more steps are unmeasured than epochs have ended.
  trace.steps += 1;
  EXPECT_EQ(tell_unmeasured(summarize("run", trace)), "4 of the 16 steps are not in these means");
}

TEST(RunSummary, SaysNothingOfARunThatIsMeasuredWhole) {
  const ReportRun whole = sample_run("run");
  EXPECT_EQ(tell_unmeasured(summarize("run", whole.trace)), "");
  EXPECT_FALSE(has(to_html("title", {}, {whole}), "not in these means"));
}

TEST(RunSummary, CountsOneTransitionInTheSingular) {
  RunSummary run = summarize("run", make_run(1).trace);
  EXPECT_EQ(run.transition_count, 0) << "the start of a run is no transition from plan to plan";
  EXPECT_TRUE(
      has(to_text(run), "run: 4 steps, 32 samples in 0.043 s (0.003 s of it in the start), "))
      << to_text(run);
  run.transition_count = 1;
  EXPECT_TRUE(has(to_text(run), " in the start and 1 transition), "));
  run.transition_count = 2;
  run.starts = 0;
  EXPECT_TRUE(has(to_text(run), " in 2 transitions), "));
}

TEST(RunSummary, CountsTheStartOfAProcessThatGoesOnAsAStart) {
  FreezeTrace trace;
  trace.steps = 30;
  const auto begin_plan = [&](Step step, const std::string& mask) {
    add_event(trace, {step, MaskEvent{FreezeMask::parse(mask, "masks", 1)}});
    add_event(trace, {step, PlanEvent{"phase/plan.json", "plan", 10ms}});
    add_event(trace, {step, TransitionEvent{1ms, 1ms, 1ms, Bytes{0}}});
  };
  begin_plan(0, "11");
  begin_plan(10, "01");
  begin_plan(15, "01");
  begin_plan(20, "11");
  const RunSummary run = summarize("run", trace);
  EXPECT_EQ(run.transition_count, 2);
  EXPECT_EQ(run.starts, 2);
  EXPECT_EQ(run.transitions, Duration{12ms});
  EXPECT_TRUE(has(to_text(run), " in 2 starts and 2 transitions), ")) << to_text(run);
}

TEST(RunSummary, ExplainsTheAllocatorUnderEveryTableOfMemory) {
  const ReportRun run = sample_run("run");
  RunSummary summary = summarize("run", run.trace);
  const std::string note(explain_allocator());
  EXPECT_FALSE(has(to_text(summary), note));
  summary.phases.back().memory = run.phases.back().memory;
  EXPECT_TRUE(to_text(summary).ends_with("\n" + note + "\n")) << to_text(summary);
  EXPECT_TRUE(has(to_html("title", {}, {sample_run("run")}), "allocator: all that libtorch"));
}

TEST(RunSummary, OfARunWhoseTraceLostItsPlanIsRefused) {
  const TemporaryFolder folder("cut_run");
  const ReportRun run = sample_run("run");
  write_run(run, folder.path());
  const auto file = folder.path() / "trace.jsonl";
  std::string text = read_text_file(file);
  text.resize(text.find('\n') + 1);
  write_text_file(file, text);
  EXPECT_THROW(read_run(folder.path().string()), InputError);
  // A run that never counted its events is no whole run either.
  const std::size_t count = text.find("\"events\":");
  text.erase(count, text.find(',', count) + 1 - count);
  write_text_file(file, text);
  EXPECT_THROW(read_run(folder.path().string()), InputError);
}

}  // namespace
}  // namespace frazil
