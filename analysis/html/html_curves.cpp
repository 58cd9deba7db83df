#include "analysis/html/html_curves.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
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

// Lays what was predicted beside each run's throughput.
std::string draw_throughput(const std::vector<ReportRun>& runs,
                            const std::vector<RunSummary>& summaries) {
  Chart chart =
      overlay({"Throughput", "step", "samples/s", {}, phase_marks(summaries)}, runs,
              [](const ReportRun& run) { return throughput_series(run.name, run.trace); });
  for (std::size_t i = 0; i < runs.size(); ++i) {
    Series predicted = predicted_series(summaries[i]);
    if (predicted.x.empty()) continue;
    chart.series[i].name += ", measured";
    predicted.name += ", predicted";
    predicted.beside = i;
    chart.series.push_back(std::move(predicted));
  }
  return draw_overlay(chart, kFullWidth, 260);
}

// Draws the loss of the later runs less that of the first, where both were evaluated: what two
// curves that hide each other differ by.
std::string draw_difference(const std::vector<ReportRun>& runs) {
  Chart chart{.title = "Difference of loss",
              .x_label = "step",
              .y_label = fmt::format("held-out data, less that of {}", runs.front().name),
              .series = {},
              .marks = {},
              .levels = {{0, ""}}};
  const Series base = eval_series(runs.front().name, runs.front().trace, EvalValue::kLoss);
  for (std::size_t i = 1; i < runs.size(); ++i) {
    Series series = subtract(eval_series(runs[i].name, runs[i].trace, EvalValue::kLoss), base);
    if (!series.x.empty()) chart.series.push_back(std::move(series));
  }
  if (chart.series.size() == 1) chart.series.front().remark = " - " + runs.front().name;
  return chart.series.empty() ? "" : draw_overlay(chart, kHalfWidth, 250);
}

// Draws a loss by its logarithm if it falls to a fifth or less: curves that end close to each other
// then stay apart.
Chart with_fitting_scale(Chart chart) {
  double low = std::numeric_limits<double>::infinity();
  double high = 0;
  for (const Series& series : chart.series) {
    for (const double value : series.y) {
      low = std::min(low, value);
      high = std::max(high, value);
    }
  }
  chart.is_log = low > 0 && high >= 5 * low;
  if (chart.is_log) chart.y_label += chart.y_label.empty() ? "log scale" : ", log scale";
  return chart;
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
  return {with_fitting_scale(with_validation(
              overlay({"Loss", "step", "held-out data", {}, {}}, runs, EvalValue::kLoss), runs,
              EvalValue::kValidationLoss)),
          with_fitting_scale(
              overlay({"Training loss", "step", "", {}, {}}, runs, EvalValue::kTrainLoss)),
          with_validation(
              overlay({"Accuracy", "step", percent, {}, {}}, runs, EvalValue::kAccuracyPercent),
              runs, EvalValue::kValidationAccuracyPercent),
          overlay({"Accuracy over time", "seconds of training and transitions", percent, {}, {}},
                  runs, [](const ReportRun& run) {
                    return eval_over_time(run.name, run.trace, EvalValue::kAccuracyPercent);
                  })};
}

}  // namespace

std::string draw_curves(const std::vector<ReportRun>& runs,
                        const std::vector<RunSummary>& summaries) {
  std::string markup = draw_throughput(runs, summaries) + draw_staircases(runs);
  markup += "<div class=\"pair\">\n";
  const std::vector<Chart> charts = chart_evaluations(runs);
  for (const Chart& chart : charts) {
    markup += draw_overlay(chart, kHalfWidth, 250);
    if (&chart == &charts.front() && runs.size() > 1) markup += draw_difference(runs);
  }
  return markup + "</div>\n";
}

}  // namespace frazil
