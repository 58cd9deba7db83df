#include "analysis/html/html_phases.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/compare.h"
#include "analysis/html/html_parts.h"
#include "analysis/svg/memory_chart.h"
#include "analysis/svg/svg.h"
#include "analysis/svg/time_bars.h"
#include "analysis/tables/time_table.h"

namespace frazil {
namespace {

std::optional<double> ms_of(std::optional<double> nanoseconds) {
  if (nanoseconds) *nanoseconds /= 1e6;
  return nanoseconds;
}

std::string draw_lone_actions(const std::string& label, const std::vector<std::string>& actions) {
  if (actions.empty()) return "";
  return html_paragraph("remark", fmt::format("Only {}: {}", label, fmt::join(actions, "  ")));
}

std::string draw_comparison(const Comparison& comparison) {
  Table table{.header = {"stage", "action", "count", "predicted ms", "measured ms", "ratio", ""},
              .rows = {}};
  std::string explained;
  for (const ActionRow& row : comparison.actions) {
    const std::string stage = row.pipeline.value == 0
                                  ? fmt::format("{}", row.stage.value)
                                  : fmt::format("{}:{}", row.pipeline.value, row.stage.value);
    if (row.pipeline.value > 0 && explained.empty()) {
      explained = html_paragraph("remark", fmt::format("{}: stage {} of pipeline {}; a stage alone "
                                                       "is of pipeline 0.",
                                                       stage, row.stage.value, row.pipeline.value));
    }
    const std::string_view remark = remark_on(row.kind);
    table.rows.push_back({stage, std::string(kind_name(row.kind)), count_text(row.count),
                          number_text(to_ms(row.predicted), 3), number_text(to_ms(row.measured), 3),
                          number_text(row.ratio(), 3),
                          remark.empty() ? "" : fmt::format("measured: {}", remark)});
  }
  return html_details(fmt::format("By stage and action ({} rows)", table.rows.size()), table,
                      explained + draw_lone_actions("predicted", comparison.only_predicted) +
                          draw_lone_actions("measured", comparison.only_measured));
}

// Says what the predicted and the measured step are means of.
std::string describe_steps(const Comparison& comparison, const PhaseSummary& summary) {
  const SampledSteps& sampled = *summary.sampled;
  std::string text = fmt::format(
      "One step: predicted {} ms; measured {} ms, {}; ratio {}.",
      number_text(to_ms(comparison.predicted_step), 3),
      number_text(to_ms(comparison.measured_step), 3),
      sampled.count == 1 ? describe(sampled) : "mean of the lowest 90 % of " + describe(sampled),
      number_text(comparison.step_ratio, 3));
  if (const std::optional<double> all = ms_of(summary.measured_step_ns())) {
    text += fmt::format(
        " All {} steps of the phase took {} ms on average, with taking their samples and what lies "
        "between two steps.",
        count_text(summary.steps), number_text(all, 3));
  }
  return text;
}

// Returns the names of the devices as far as the record of their memory tells them.
std::vector<std::string> name_devices(const ReportPhase& phase) {
  std::vector<std::string> names;
  if (!phase.memory) return names;
  for (const DeviceMemory& device : phase.memory->devices) names.push_back(device.name);
  return names;
}

// Makes a bar for each device, predicted above measured; of many devices for their mean alone.
std::vector<TimeBar> make_bars(const ReportPhase& phase, const PhaseSummary& summary) {
  constexpr std::size_t kMostDevices = 16;
  const Step window = count_window(phase.predicted);
  std::vector<TimeSplit> predicted = mean_splits_by_device(phase.predicted, window);
  std::vector<TimeSplit> measured = mean_splits_by_device(phase.measured, window);
  const bool has_mean_alone = predicted.size() > kMostDevices;
  if (has_mean_alone) {
    predicted = {*summary.predicted_time};
    if (summary.measured_time) measured = {*summary.measured_time};
  }
  const std::vector<std::string> names = name_devices(phase);
  std::vector<TimeBar> bars;
  for (std::size_t d = 0; d < predicted.size(); ++d) {
    const std::string name = has_mean_alone     ? "mean"
                             : d < names.size() ? names[d]
                                                : fmt::format("device {}", d);
    bars.push_back({name, "predicted", predicted[d]});
    if (d < measured.size()) bars.push_back({"", "measured", measured[d]});
  }
  return bars;
}

std::string draw_times(const ReportPhase& phase, const PhaseSummary& summary) {
  const Table table =
      tabulate_parts({summary.first_step, *summary.predicted_time, summary.measured_time});
  return "<h4>Where the time of a step goes</h4>\n" +
         html_figure(draw_time_bars(make_bars(phase, summary), kFullWidth)) +
         html_details("Mean of the devices over all sampled steps", table,
                      html_paragraph("remark", std::string(explain_parts())));
}

std::string draw_link(const ReportPhase& phase) {
  if (phase.trace_file.empty()) return "";
  return fmt::format(
      "<p class=\"remark\">{}: both time lines, of all sampled steps, to be opened at "
      "ui.perfetto.dev</p>\n",
      html_link(phase.trace_file.generic_string(), phase.trace_file.generic_string()));
}

std::string draw_memory(const MemoryRecord& record) {
  constexpr std::size_t kMostCharts = 4;
  std::string markup = html_paragraph(
      "", fmt::format("Memory of step {}, counted alike on both sides, and what the allocator "
                      "handed out in each device's thread.",
                      count_text(record.step)));
  markup += "<div class=\"pair\">\n";
  for (std::size_t d = 0; d < std::min(record.devices.size(), kMostCharts); ++d) {
    markup += html_figure(draw_chart(make_memory_chart(record.devices[d]), kHalfWidth, 240));
  }
  markup += "</div>\n";
  if (record.devices.size() > kMostCharts) {
    markup += html_paragraph("remark", fmt::format("The curves of {} more devices are left out.",
                                                   record.devices.size() - kMostCharts));
  }
  const Table table = tabulate_memory(record);
  return markup + html_details(fmt::format("By device and kind ({} rows)", table.rows.size()),
                               table,
                               html_paragraph("remark", fmt::format("{}.", explain_allocator())));
}

std::string draw_head(const ReportPhase& phase, std::size_t number) {
  return fmt::format("<h3>Phase {}, from step {}</h3>\n", number, count_text(phase.first_step)) +
         html_paragraph("remark", phase.summary);
}

// Draws the time lines of a step or of a window. `shown`: the measured one, by its first step, if
// any.
std::string draw_lines(const ReportPhase& phase, std::optional<Step> shown,
                       const Comparison& comparison, std::size_t& spans_left) {
  const Step window = comparison.window;
  const Timeline measured = shown ? window_of(phase.measured, *shown, window) : Timeline{};
  const std::size_t spans = phase.predicted.spans.size() + measured.spans.size();
  if (spans > spans_left) {
    return html_paragraph("remark", "Its time lines are left out to keep this page small.");
  }
  spans_left -= spans;
  std::string title = "Measured";
  if (shown && window == 1) title += fmt::format(": step {}", count_text(*shown));
  if (shown && window > 1) {
    title += fmt::format(": steps {} to {}", count_text(*shown), count_text(*shown + window - 1));
  }
  if (shown) title += fmt::format(", the median of {}", comparison.steps.size());
  return html_figure(draw_timelines({{"Predicted", &phase.predicted}, {title, &measured}},
                                    kFullWidth, name_devices(phase)));
}

}  // namespace

std::string draw_phase_table(const RunSummary& run) {
  Table table{.header = {"phase", "from step", "steps", "plan", "predicted ms/step",
                         "measured ms/step", "ratio", "predicted samples/s", "measured samples/s"},
              .rows = {}};
  const bool extrapolates = run.extrapolates();
  if (extrapolates) table.header.push_back("");
  for (std::size_t i = 0; i < run.phases.size(); ++i) {
    const PhaseSummary& phase = run.phases[i];
    table.rows.push_back({std::to_string(i), count_text(phase.first_step), count_text(phase.steps),
                          phase.plan, number_text(to_ms(phase.predicted_step), 3),
                          number_text(ms_of(phase.measured_step_ns()), 3),
                          number_text(phase.ratio(), 3), rate_text(phase.predicted_rate()),
                          rate_text(phase.measured_rate())});
    if (extrapolates) table.rows.back().push_back(phase.extrapolated ? "extrapolated" : "");
  }
  std::string markup = html_table(table);
  if (extrapolates) {
    markup += html_paragraph("remark", fmt::format("{}.", explain_extrapolated()));
  }
  if (run.unmeasured_steps > 0) {
    markup += html_paragraph("remark", tell_unmeasured(run) + ".");
  }
  return markup;
}

std::string draw_phase(const ReportPhase& phase, const PhaseSummary& summary, std::size_t number,
                       std::size_t& spans_left) {
  std::string markup = draw_head(phase, number);
  if (phase.predicted.spans.empty()) {
    return markup + html_paragraph("remark", "The run was ended before its time lines were kept.");
  }
  const Comparison comparison = compare(phase.predicted, phase.measured);
  const std::optional<Step> shown = representative_step(comparison);
  markup += draw_lines(phase, shown, comparison, spans_left);
  markup += draw_link(phase);
  if (shown) markup += html_paragraph("", describe_steps(comparison, summary));
  if (const std::string uncovered = tell_uncovered(summary); !uncovered.empty()) {
    markup += html_paragraph("warn", uncovered + ".");
  }
  if (summary.predicted_time) markup += draw_times(phase, summary);
  if (shown) markup += draw_comparison(comparison);
  if (phase.memory) markup += draw_memory(*phase.memory);
  return markup;
}

}  // namespace frazil
