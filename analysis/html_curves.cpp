#include "analysis/html_curves.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "analysis/html_parts.h"
#include "analysis/run_series.h"
#include "analysis/svg.h"

namespace frazil {
namespace {

// Where plans change. Runs that keep their plan need no mark.
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

// Nothing when no run has a point.
std::string draw_overlay(Chart chart, const std::vector<ReportRun>& runs, const MakeSeries& make,
                         int width, int height) {
  bool any = false;
  for (const ReportRun& run : runs) {
    chart.series.push_back(make(run));
    any = any || !chart.series.back().x.empty();
  }
  return any ? html_figure(draw_chart(chart, width, height)) : "";
}

}  // namespace

std::string draw_curves(const std::vector<ReportRun>& runs,
                        const std::vector<RunSummary>& summaries) {
  const auto marks = phase_marks(summaries);
  const auto of_value = [](EvalValue value) -> MakeSeries {
    return [value](const ReportRun& run) { return eval_series(run.name, run.trace, value); };
  };
  std::string markup = draw_overlay(
      {"Throughput", "step", "samples/s", {}, marks}, runs,
      [](const ReportRun& run) { return throughput_series(run.name, run.trace); }, kFullWidth, 260);
  const auto freezing = std::count_if(
      runs.begin(), runs.end(), [](const ReportRun& run) { return freezes_anything(run.trace); });
  for (const ReportRun& run : runs) {
    if (!freezes_anything(run.trace)) continue;
    if (freezing > 1) markup += html_paragraph("remark", "The blocks of " + run.name);
    markup += html_figure(draw_freeze_staircase(run.trace));
  }
  markup += "<div class=\"pair\">\n";
  markup += draw_overlay({"Loss", "step", "held-out data", {}, {}}, runs,
                         of_value(EvalValue::kLoss), kHalfWidth, 250);
  markup += draw_overlay({"Training loss", "step", "", {}, {}}, runs,
                         of_value(EvalValue::kTrainLoss), kHalfWidth, 250);
  markup += draw_overlay({"Accuracy", "step", "% of held-out data", {}, {}}, runs,
                         of_value(EvalValue::kAccuracyPercent), kHalfWidth, 250);
  markup += draw_overlay(
      {"Accuracy over time", "seconds of training and transitions", "% of held-out data", {}, {}},
      runs,
      [](const ReportRun& run) {
        return eval_over_time(run.name, run.trace, EvalValue::kAccuracyPercent);
      },
      kHalfWidth, 250);
  return markup + "</div>\n";
}

}  // namespace frazil
