#include "analysis/html/html_report.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "analysis/html/html_parts.h"
#include "analysis/html/html_phases.h"
#include "analysis/html/html_totals.h"
#include "analysis/run_answer.h"
#include "analysis/run_series.h"
#include "analysis/svg/svg_parts.h"
#include "profiles/error.h"
#include "profiles/model_profile_json.h"
#include "profiles/text_file.h"
#include "tests/analysis/sample_runs.h"
#include "tests/support/golden.h"
#include "tests/support/sample_models.h"
#include "traces/timeline_csv.h"

namespace frazil {
namespace {

TEST(ReadRun, TakesWhatATrainingRunLeaves) {
  const TemporaryFolder folder("read_run");
  const ReportRun run = sample_run("elastic");
  write_run(run, folder.path() / "elastic");
  for (const std::string ending : {"elastic", "elastic/"}) {
    const ReportRun read = read_run((folder.path() / ending).string());
    EXPECT_EQ(read.name, "elastic");
    EXPECT_EQ(read.trace, run.trace);
    ASSERT_EQ(read.phases.size(), 2U);
    EXPECT_EQ(read.phases[1].first_step, 20);
    EXPECT_EQ(read.phases[1].summary, "second plan");
    EXPECT_EQ(read.phases[1].predicted, run.phases[1].predicted);
    EXPECT_EQ(read.phases[1].measured, run.phases[1].measured);
    EXPECT_EQ(read.phases[0].memory, std::nullopt);
    EXPECT_EQ(read.phases[1].memory, run.phases[1].memory);
  }
}

TEST(ReadRun, LeavesOutThePhaseThatLacksATimeLine) {
  for (const std::string name : {"predicted.csv", "measured.csv"}) {
    const TemporaryFolder folder("missing_phase");
    const ReportRun run = sample_run("run");
    write_run(run, folder.path());
    std::filesystem::remove(folder.path() / "phase-1" / name);
    const ReportRun read = read_run(folder.path().string());
    ASSERT_EQ(read.phases.size(), 2U);
    EXPECT_EQ(read.phases[0].measured, run.phases[0].measured);
    EXPECT_TRUE(read.phases[1].predicted.spans.empty());
    EXPECT_TRUE(read.phases[1].measured.spans.empty());
    EXPECT_EQ(read.phases[1].summary, "second plan");
    const std::vector<std::string> expected{
        "note: the time lines of the phase from step 20 are left out: phase-1 has no " + name};
    EXPECT_EQ(read.doubts, expected);
    EXPECT_NE(to_text(summarize(read)).find(expected[0]), std::string::npos);
    EXPECT_NE(to_html("title", {}, {read}).find(expected[0].substr(6)), std::string::npos);
  }
}

TEST(ReadRun, TellsHowSureTheClocksOfItsProcessesAre) {
  const TemporaryFolder folder("clocks");
  ReportRun run = sample_run("run");
  run.phases[0].clock_uncertainty = Duration{9'000};
  run.phases[1].clock_uncertainty = Duration{12'000};
  write_run(run, folder.path());
  const ReportRun read = read_run(folder.path().string());
  EXPECT_EQ(read.phases[0].measured, run.phases[0].measured);
  const std::vector<std::string> expected{
      "note: measured times of different processes are sure to within 12.000 us beside each other"};
  EXPECT_EQ(read.doubts, expected);
  EXPECT_NE(to_text(summarize(read)).find(expected[0]), std::string::npos);
}

TEST(ReadRun, RefusesWhatIsNoFolderOfARun) {
  const TemporaryFolder folder("nowhere");
  EXPECT_THROW(read_run((folder.path() / "nowhere").string()), InputError);
}

TEST(Summary, SumsThePhasesOfARun) {
  const RunSummary run = summarize("run", sample_run("run").trace);
  EXPECT_EQ(run.steps, 40);
  EXPECT_EQ(run.samples, 320);
  EXPECT_EQ(run.training, Duration{375'000'000});
  EXPECT_EQ(run.transitions, Duration{6'000'000});
  EXPECT_EQ(run.transition_count, 1);
  ASSERT_EQ(run.phases.size(), 2U);
  const PhaseSummary& second = run.phases[1];
  EXPECT_EQ(second.first_step, 20);
  EXPECT_EQ(second.steps, 20);
  EXPECT_EQ(second.measured, Duration{125'000'000});
  EXPECT_DOUBLE_EQ(second.measured_step_ns().value(), 6'250'000);
  EXPECT_DOUBLE_EQ(second.ratio().value(), 0.8);
  EXPECT_DOUBLE_EQ(second.measured_rate().value(), 160 / 0.125);
  EXPECT_DOUBLE_EQ(second.predicted_rate().value(), 160 / 0.100);
  EXPECT_DOUBLE_EQ(run.prediction_error().value(), 0.2);
  EXPECT_DOUBLE_EQ(run.rate().value(), 320 / 0.381);
  EXPECT_DOUBLE_EQ(run.last_eval.value().accuracy.value(), 0.9);
}

TEST(Summary, HasNoRatioWithoutMeasuredSteps) {
  FreezeTrace trace;
  add_event(trace, {0, PlanEvent{"plan.json", "", Duration{10}}});
  const RunSummary run = summarize("run", trace);
  EXPECT_EQ(run.phases.at(0).plan, "plan.json");
  EXPECT_FALSE(run.phases.at(0).ratio().has_value());
  EXPECT_FALSE(run.rate().has_value());
  EXPECT_FALSE(run.prediction_error().has_value());
}

TEST(Summary, RefusesCostsThatOverflow) {
  FreezeTrace trace;
  const Duration longest{std::numeric_limits<std::int64_t>::max()};
  add_event(trace, {0, CostEvent{1, 1, longest}});
  add_event(trace, {1, CostEvent{1, 1, Duration{1}}});
  EXPECT_THROW(summarize("run", trace), InputError);
}

TEST(Summary, SpeaksTextAndJson) {
  const RunSummary run = summarize("run", sample_run("run").trace);
  EXPECT_NE(to_text(run).find("20     20  second plan         5.000        6.250  0.800"),
            std::string::npos)
      << to_text(run);
  const nlohmann::json json = nlohmann::json::parse(to_json(std::vector<RunSummary>{run}));
  EXPECT_EQ(json.at("runs").at(0).at("training_ns"), 375'000'000);
  EXPECT_EQ(json.at("runs").at(0).at("phases").at(1).at("ratio"), 0.8);
}

TEST(Throughput, HoldsEachRateUntilTheNextCost) {
  const Series series = throughput_series("run", sample_run("run").trace);
  EXPECT_EQ(series.x, (std::vector<double>{0, 10, 20, 30, 40}));
  EXPECT_EQ(series.y, (std::vector<double>{640, 640, 1280, 1280, 1280}));
}

TEST(Throughput, OfALongRunIsBinnedWithinPhases) {
  FreezeTrace trace;
  for (Step step = 0; step < 5000; ++step) {
    if (step % 2500 == 0) add_event(trace, {step, PlanEvent{"p", "p", Duration{1}}});
    add_event(trace, {step, CostEvent{1, 1, Duration{step < 2500 ? 1'000'000 : 500'000}}});
  }
  const Series series = throughput_series("run", trace);
  EXPECT_LE(series.x.size(), 303U);
  for (std::size_t i = 0; i < series.x.size(); ++i) {
    EXPECT_NEAR(series.y[i], series.x[i] < 2500 ? 1000 : 2000, 1e-6) << series.x[i];
  }
}

TEST(Evaluations, LieAfterTheTimeThatLedToThem) {
  const Series series = eval_over_time("run", sample_run("run").trace, EvalValue::kAccuracyPercent);
  ASSERT_EQ(series.x.size(), 2U);
  EXPECT_DOUBLE_EQ(series.x[0], 0.250);
  EXPECT_DOUBLE_EQ(series.x[1], 0.250 + 0.006 + 0.125);
  EXPECT_DOUBLE_EQ(series.y[1], 90);
}

TEST(Evaluations, OfAValidationAreThoseThatHaveOne) {
  FreezeTrace trace = sample_run("run").trace;
  const auto series_of = [&](EvalValue value) { return eval_series("run", trace, value); };
  EXPECT_TRUE(series_of(EvalValue::kValidationLoss).x.empty());
  events_of<EvalEvent>(trace).at(1)->validation = PartScore{0.25, 0.875};
  EXPECT_EQ(series_of(EvalValue::kValidationLoss).x, std::vector<double>{40});
  EXPECT_EQ(series_of(EvalValue::kValidationLoss).y, std::vector<double>{0.25});
  EXPECT_EQ(series_of(EvalValue::kValidationAccuracyPercent).y, std::vector<double>{87.5});
  EXPECT_EQ(series_of(EvalValue::kAccuracyPercent).x, (std::vector<double>{20, 40}));
}

TEST(NumberText, GroupsThousands) {
  EXPECT_EQ(number_text(1234567.891, 2), "1,234,567.89");
  EXPECT_EQ(number_text(-1234.0, 0), "-1,234");
  EXPECT_EQ(number_text(999.0, 1), "999.0");
  EXPECT_EQ(number_text(std::nullopt, 1), "–");
  EXPECT_EQ(number_text(std::numeric_limits<double>::infinity(), 1), "–");
  EXPECT_EQ(count_text(1000), "1,000");
  EXPECT_EQ(count_text(-100), "-100");
}

TEST(HtmlReport, ShowsRunsPhasesAndNotes) {
  const std::string page =
      to_html("Digits", {"costs are extrapolated"}, {sample_run("elastic"), sample_run("other")});
  for (const char* part :
       {"<h1>Digits</h1>", "costs are extrapolated", "second plan", "Throughput",
        "Accuracy over time", "Transitions", "two cores", "Predicted against measured: elastic",
        "Predicted against measured: other", "Measured: step 20, the median of 2",
        "Memory of step 21", "Memory of first", "measured: at most 5.00 MiB"}) {
    EXPECT_NE(page.find(part), std::string::npos) << part;
  }
  EXPECT_EQ(page, to_html("Digits", {"costs are extrapolated"},
                          {sample_run("elastic"), sample_run("other")}));
}

// Returns sample_run() with validation scores and a second phase that is marked as extrapolated.
ReportRun validated_run(const std::string& name) {
  ReportRun run = sample_run(name);
  events_of<PlanEvent>(run.trace).at(1)->extrapolated = true;
  events_of<EvalEvent>(run.trace).at(0)->validation = PartScore{1.25, 0.5};
  events_of<EvalEvent>(run.trace).at(1)->validation = PartScore{0.5, 0.875};
  return run;
}

TEST(HtmlReport, TabulatesValidationsAndExtrapolatedPhasesLikeThis) {
  const RunSummary validated = summarize("validated", validated_run("validated").trace);
  const RunSummary other = summarize("other", sample_run("other").trace);
  EXPECT_TRUE(matches_golden("analysis_totals.html", draw_totals({validated, other})));
  EXPECT_TRUE(matches_golden("analysis_phases.html", draw_phase_table(validated)));
}

TEST(HtmlReport, LaysTheCurveOfAValidationBesideThatOfTheTest) {
  const std::string page = to_html("t", {}, {sample_run("other"), validated_run("run")});
  for (const char* part :
       {"<g class=\"s1\"><title>run, test</title>",
        "<g class=\"s1\" opacity=\".45\"><title>run, validation</title>",
        "run, validation 40: 87.5", "run, validation 20: 1.25", "<title>other</title>"}) {
    EXPECT_NE(page.find(part), std::string::npos) << part;
  }
}

TEST(HtmlReport, NamesNoPartAndNoExtrapolationWhereARunHasNone) {
  const std::string page = to_html("t", {}, {sample_run("other"), sample_run("run")});
  for (const char* word : {"validation", ", test", "extrapolated"}) {
    EXPECT_EQ(page.find(word), std::string::npos) << word;
  }
  std::size_t faint = 0;
  for (std::size_t at = 0; (at = page.find("opacity=\".45\"", at)) != std::string::npos; ++at)
    ++faint;
  EXPECT_EQ(faint, 4U) << "the predicted throughput of each run, and its swatch";
}

TEST(HtmlReport, GivesARunsTimeWithTheSameDigitsInTileAndTable) {
  ReportRun run = sample_run("short");
  run.phases.clear();
  run.trace.events = {{0, CostEvent{1, 8, Duration{23'400'000}}}};
  const std::string page = to_html("t", {}, {run});
  EXPECT_NE(page.find(">0.023 s<"), std::string::npos);
  EXPECT_NE(page.find(">0.023</td>"), std::string::npos);
}

TEST(HtmlReport, EscapesEveryTextFromOutside) {
  const std::string evil = "<script>alert('x')</script>";
  ReportRun run = sample_run(evil);
  run.trace.blocks[1] = evil;
  run.trace.provenance[evil] = evil;
  for (ReportPhase& phase : run.phases) phase.summary = evil;
  for (FreezeEvent& event : run.trace.events) {
    if (auto* plan = std::get_if<PlanEvent>(&event.what)) plan->summary = evil;
  }
  const std::string page = to_html(evil, {evil}, {run, run});
  EXPECT_EQ(page.find("<script>alert"), std::string::npos);
  EXPECT_EQ(page.find("<script"), page.rfind("<script")) << "the page's own stands alone";
  EXPECT_NE(page.find("&lt;script&gt;"), std::string::npos);
}

TEST(HtmlReport, NeedsNothingFromOutside) {
  const std::string page = to_html("Digits", {}, {sample_run("elastic")});
  for (const char* loader : {"src=", "href=", "@import", "url("}) {
    EXPECT_EQ(page.find(loader), std::string::npos) << loader;
  }
}

// True if the page, without its markup and its script, has the words.
bool says(const std::string& page, const std::string& words) {
  return page.substr(0, page.find("<script>")).find(words) != std::string::npos;
}

TEST(HtmlReport, MarksARunDuringWhichOtherProgramsKeptTheMachineBusy) {
  ReportRun quiet = sample_run("quiet");
  ReportRun busy = sample_run("busy");
  quiet.trace.provenance["foreign_cores"] = "0.15";
  busy.trace.provenance["foreign_cores"] = "0.46";
  const std::string page = to_html("t", {}, {quiet, busy});
  EXPECT_TRUE(says(page, "busy: other programs kept 0.46 cores busy meanwhile"));
  EXPECT_TRUE(says(page, "<span class=\"warn\">busy machine: busy</span>"));
  EXPECT_FALSE(says(to_html("t", {}, {quiet, quiet}), "busy"));
  EXPECT_FALSE(says(to_html("t", {}, {sample_run("untold")}), "other programs"));
}

TEST(HtmlReport, SaysWhereTheTimeWentAndOfWhichSteps) {
  const std::string page = to_html("t", {}, {sample_run("run")});
  EXPECT_TRUE(says(page,
                   "mean of the lowest 90 % of 2 sampled steps, one in 10 from step 0 to "
                   "step 10; ratio 0.995. All 20 steps of the phase took 12.500 ms"));
  EXPECT_TRUE(says(page, "bubble: all but compute"));
  EXPECT_TRUE(says(page, "<title>run, predicted</title>")) << "the predicted throughput";
}

TEST(HtmlReport, WarnsWhereSampledStepsEndLongBeforeTheirPhase) {
  ReportRun run = sample_run("run");
  EXPECT_FALSE(says(to_html("t", {}, {run}), "need not stand for the rest"));
  events_of<CostEvent>(run.trace).back()->steps = 500;
  EXPECT_TRUE(says(to_html("t", {}, {run}), "need not stand for the rest"));
}

TEST(HtmlReport, RepeatsWhatTheProfileDoesNotKnow) {
  const TemporaryFolder folder("doubted_profile");
  write_run(sample_run("run"), folder.path());
  ModelProfile profile = make_chain(2, Duration{1}, Duration{1}, Duration{1});
  profile.doubts = {{DoubtedFact::kStash, DoubtKind::kLowerBound, "each layer's input alone"}};
  write_text_file(folder.path() / "inputs" / "model.json", to_json(profile));
  const ReportRun run = read_run(folder.path().string());
  for (const std::string words :
       {"saved activations are a lower bound: each layer's input alone",
        "its plans fit if saved activations take no more than the profile says"}) {
    EXPECT_TRUE(says(to_html("t", {}, {run}), escape_markup(words))) << words;
    EXPECT_NE(to_text(summarize(run)).find("note: " + words + "\n"), std::string::npos) << words;
  }
}

TEST(HtmlReport, LinksToTheTracesBesideIt) {
  ReportRun run = sample_run("run");
  run.phases[1].trace_file = "a \"b\":c/phase-1/trace.json";
  const std::string page = to_html("t", {}, {run});
  EXPECT_TRUE(says(page, "<a href=\"a%20%22b%22%3Ac/phase-1/trace.json\">"));
}

TEST(HtmlReport, ExplainsAStageOfASecondPipeline) {
  ReportRun run = sample_run("run");
  EXPECT_FALSE(says(to_html("t", {}, {run}), "of pipeline 1"));
  for (Timeline* timeline : {&run.phases[0].predicted, &run.phases[0].measured}) {
    for (Span& span : timeline->spans) span.action.pipeline = PipelineId{1};
  }
  EXPECT_TRUE(says(to_html("t", {}, {run}), "1:0: stage 0 of pipeline 1"));
}

TEST(HtmlReport, TellsLossesApartThatHideEachOther) {
  ReportRun other = sample_run("other");
  events_of<EvalEvent>(other.trace).at(1)->loss = 0.1;
  const std::string page = to_html("t", {}, {sample_run("run"), other});
  EXPECT_TRUE(says(page, "held-out data, log scale")) << "from 1.5 to 0.1";
  EXPECT_TRUE(says(page, "Difference of loss"));
  EXPECT_TRUE(says(page, "other 40: -0.65"));
  EXPECT_FALSE(says(to_html("t", {}, {sample_run("run")}), "log scale"));
}

TEST(HtmlReport, StaysBelowAMegabyteHoweverManySpans) {
  ReportRun run = sample_run("large");
  Timeline many;
  many.devices = 8;
  for (std::int32_t i = 0; i < 1900; ++i) {
    const std::int64_t start = 10'000 * std::int64_t{i};
    add_span(many, i % 8, Lane::kCompute, stage_action(i % 8, ActionKind::kForward, i), start,
             start + 70'000);
  }
  for (int i = 0; i < 6; ++i) {
    add_event(run.trace, {40, PlanEvent{"plan.json", "wide", Duration{1}}});
    run.phases.push_back(
        {.first_step = 40, .summary = "wide", .predicted = many, .measured = many});
  }
  const std::string page = to_html("Large", {}, {run});
  EXPECT_LT(page.size(), 1'000'000U);
  EXPECT_NE(page.find("left out to keep this page small"), std::string::npos);
}

TEST(HtmlReport, IsAPageWithoutAnyRun) {
  EXPECT_NE(to_html("Empty", {}, {}).find("</html>"), std::string::npos);
}

}  // namespace
}  // namespace frazil
