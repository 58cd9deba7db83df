#include "analysis/html/html_curves.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "analysis/html/html_parts.h"
#include "analysis/run_series.h"
#include "analysis/svg/svg.h"

namespace frazil {
namespace {

// Marks the steps at which plans change. Runs that keep their plan need no mark.
std::vector<std::pair<double, std::string>> phase_marks(const std::vector<RunSummary>& runs) {
  const auto changing = std::count_if(runs.begin(), runs.end(),
                                      [](const RunSummary& run) { return run.phases.size() > 1; });
  std::vector<std::pair<double, std::string>> marks;
  for (const RunSummary& run : runs) {
    if (run.phases.size() < 2) continue;
    for (std::size_t i = 0; i < run.phases.size(); ++i) {
      const std::string word =
          changing > 1 ? fmt::format("{} phase {}", run.name, i) : fmt::format("phase {}", i);
      marks.emplace_back(static_cast<double>(run.phases[i].first_step), word);
    }
  }
  std::stable_sort(marks.begin(), marks.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  return marks;
}

using MakeSeries = std::function<Series(const ReportRun&)>;

Chart overlay(Chart chart, const std::vector<ReportRun>& runs, const MakeSeries& make) {
  for (const ReportRun& run : runs) chart.series.push_back(make(run));
  return chart;
}

Chart overlay(Chart chart, const std::vector<ReportRun>& runs, EvalValue value) {
  return overlay(std::move(chart), runs,
                 [value](const ReportRun& run) { return eval_series(run.name, run.trace, value); });
}

// Adds to each run's curve on the test part the curve on the validation part, by which decisions
// are made.
Chart with_validation(Chart chart, const std::vector<ReportRun>& runs, EvalValue value) {
  for (std::size_t i = 0; i < runs.size(); ++i) {
    Series series = eval_series(runs[i].name + ", validation", runs[i].trace, value);
    if (series.x.empty()) continue;
    series.beside = i;
    chart.series[i].name += ", test";
    chart.series.push_back(std::move(series));
  }
  return chart;
}

// Returns "" if no run has a point.
std::string draw_overlay(const Chart& chart, int width, int height) {
  const bool any = std::any_of(chart.series.begin(), chart.series.end(),
                               [](const Series& series) { return !series.x.empty(); });
  return any ? html_figure(draw_chart(chart, width, height)) : "";
}

std::string draw_throughput(const std::vector<ReportRun>& runs,
                            const std::vector<RunSummary>& summaries) {
  const Chart chart =
      overlay({"Throughput", "step", "samples/s", {}, phase_marks(summaries)}, runs,
              [](const ReportRun& run) { return throughput_series(run.name, run.trace); });
  return draw_overlay(chart, kFullWidth, 260);
}

std::string draw_staircases(const std::vector<ReportRun>& runs) {
  const auto freezing = std::count_if(
      runs.begin(), runs.end(), [](const ReportRun& run) { return freezes_anything(run.trace); });
  std::string markup;
  for (const ReportRun& run : runs) {
    if (!freezes_anything(run.trace)) continue;
    if (freezing > 1) markup += html_paragraph("remark", "The blocks of " + run.name);
    markup += html_figure(draw_freeze_staircase(run.trace));
  }
  return markup;
}

std::vector<Chart> chart_evaluations(const std::vector<ReportRun>& runs) {
  const std::string percent = "% of held-out data";
  return {
      with_validation(overlay({"Loss", "step", "held-out data", {}, {}}, runs, EvalValue::kLoss),
                      runs, EvalValue::kValidationLoss),
      overlay({"Training loss", "step", "", {}, {}}, runs, EvalValue::kTrainLoss),
      with_validation(
          overlay({"Accuracy", "step", percent, {}, {}}, runs, EvalValue::kAccuracyPercent), runs,
          EvalValue::kValidationAccuracyPercent),
      overlay({"Accuracy over time", "seconds of training and transitions", percent, {}, {}}, runs,
              [](const ReportRun& run) {
                return eval_over_time(run.name, run.trace, EvalValue::kAccuracyPercent);
              })};
}

}  // namespace

std::string draw_curves(const std::vector<ReportRun>& runs,
                        const std::vector<RunSummary>& summaries) {
  std::string markup = draw_throughput(runs, summaries) + draw_staircases(runs);
  markup += "<div class=\"pair\">\n";
  for (const Chart& chart : chart_evaluations(runs)) {
    markup += draw_overlay(chart, kHalfWidth, 250);
  }
  return markup + "</div>\n";
}

}  // namespace frazil
