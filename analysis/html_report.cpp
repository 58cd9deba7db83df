#include "analysis/html_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <functional>

#include "analysis/html_decisions.h"
#include "analysis/html_parts.h"
#include "analysis/memory_chart.h"
#include "analysis/run_series.h"
#include "analysis/run_summary.h"
#include "analysis/svg.h"
#include "analysis/svg_parts.h"
#include "profiles/error.h"
#include "profiles/text_file.h"
#include "traces/log_costs.h"
#include "traces/timeline_csv.h"

namespace frazil {
namespace {

// About 200 bytes a span: time lines take less than 800 kB of a page.
constexpr std::size_t kMostSpans = 4000;
constexpr std::size_t kOpenRows = 14;
constexpr int kHalfWidth = 468;

double seconds_of(Duration duration) { return static_cast<double>(duration.count()) / 1e9; }
double ms_of(Duration duration) { return static_cast<double>(duration.count()) / 1e6; }

std::optional<double> ms_of(std::optional<double> nanoseconds) {
  if (nanoseconds) *nanoseconds /= 1e6;
  return nanoseconds;
}

std::optional<double> percent(std::optional<double> share) {
  if (share) *share *= 100;
  return share;
}

int rate_decimals(const std::optional<double>& rate) {
  if (!rate || *rate >= 1000) return 0;
  return *rate >= 10 ? 1 : 3;
}

std::string rate_text(const std::optional<double>& rate) {
  return number_text(rate, rate_decimals(rate));
}

// Whole times of a run, everywhere with the same digits.
std::string seconds_text(Duration duration) { return number_text(seconds_of(duration), 3); }

// Of the first run, with the other runs' values as remarks.
std::vector<Tile> make_tiles(const std::vector<RunSummary>& runs) {
  using Show = std::function<std::string(const RunSummary&)>;
  const std::vector<std::pair<std::string, Show>> shown = {
      {"time", [](const RunSummary& run) { return seconds_text(run.total()) + " s"; }},
      {"samples per second", [](const RunSummary& run) { return rate_text(run.rate()); }},
      {"accuracy",
       [](const RunSummary& run) {
         if (!run.last_eval) return std::string("–");
         return number_text(100 * run.last_eval->accuracy, 2) + " %";
       }},
      {"prediction off by", [](const RunSummary& run) {
         const std::string text = number_text(percent(run.prediction_error()), 1);
         return text == "–" ? text : text + " %";
       }}};
  std::vector<Tile> tiles;
  for (const auto& [label, show] : shown) {
    Tile tile{.label = runs.front().name + ": " + label, .value = show(runs.front()), .remark = ""};
    for (std::size_t i = 1; i < runs.size(); ++i) {
      tile.remark += (i > 1 ? ", " : "") + runs[i].name + ": " + show(runs[i]);
    }
    tiles.push_back(tile);
  }
  return tiles;
}

std::string draw_totals(const std::vector<RunSummary>& runs) {
  Table table{.header = {"run", "steps", "samples", "training s", "transitions s", "total s",
                         "samples/s", "loss", "accuracy %"},
              .rows = {}};
  if (runs.size() > 1) table.header.push_back("speed");
  const std::optional<double> base = runs.back().rate();
  for (const RunSummary& run : runs) {
    std::optional<double> loss;
    std::optional<double> accuracy;
    if (run.last_eval) {
      loss = run.last_eval->loss;
      accuracy = 100 * run.last_eval->accuracy;
    }
    table.rows.push_back({run.name, count_text(run.steps), count_text(run.samples),
                          seconds_text(run.training), seconds_text(run.transitions),
                          seconds_text(run.total()), rate_text(run.rate()), number_text(loss, 4),
                          number_text(accuracy, 2)});
    if (runs.size() > 1) {
      const std::string speed =
          run.rate() && base ? fmt::format("{:.2f}x", *run.rate() / *base) : "–";
      table.rows.back().push_back(speed);
    }
  }
  std::string markup = html_table(table);
  for (const RunSummary& run : runs) {
    if (run.unmeasured_steps == 0) continue;
    markup += html_paragraph("remark", fmt::format("{}: {}.", run.name, tell_unmeasured(run)));
  }
  if (runs.size() > 1) {
    markup += html_paragraph(
        "remark",
        fmt::format("Speed: samples per second of the total time, {} = 1.", runs.back().name));
  }
  return markup;
}

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

std::string draw_curves(const std::vector<ReportRun>& runs,
                        const std::vector<RunSummary>& summaries) {
  const auto marks = phase_marks(summaries);
  const auto of_value = [](EvalValue value) -> MakeSeries {
    return [value](const ReportRun& run) { return eval_series(run.name, run.trace, value); };
  };
  std::string markup = draw_overlay(
      {"Throughput", "step", "samples/s", {}, marks}, runs,
      [](const ReportRun& run) { return throughput_series(run.name, run.trace); }, 960, 260);
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

std::string draw_phase_table(const RunSummary& run) {
  Table table{.header = {"phase", "from step", "steps", "plan", "predicted ms/step",
                         "measured ms/step", "ratio", "predicted samples/s", "measured samples/s"},
              .rows = {}};
  for (std::size_t i = 0; i < run.phases.size(); ++i) {
    const PhaseSummary& phase = run.phases[i];
    table.rows.push_back({std::to_string(i), count_text(phase.first_step), count_text(phase.steps),
                          phase.plan, number_text(ms_of(phase.predicted_step), 3),
                          number_text(ms_of(phase.measured_step_ns()), 3),
                          number_text(phase.ratio(), 3), rate_text(phase.predicted_rate()),
                          rate_text(phase.measured_rate())});
  }
  std::string markup = html_table(table);
  if (run.unmeasured_steps > 0) {
    markup += html_paragraph("remark", tell_unmeasured(run) + ".");
  }
  return markup;
}

// The step whose makespan is the (lower) median.
std::optional<Step> representative_step(const Comparison& comparison) {
  std::vector<std::pair<Duration, Step>> steps;
  for (const StepRow& row : comparison.steps) steps.emplace_back(row.measured, row.step);
  if (steps.empty()) return std::nullopt;
  std::sort(steps.begin(), steps.end());
  return steps[(steps.size() - 1) / 2].second;
}

std::string draw_lone_actions(const std::string& label, const std::vector<std::string>& actions) {
  if (actions.empty()) return "";
  return html_paragraph("remark", fmt::format("Only {}: {}", label, fmt::join(actions, "  ")));
}

std::string draw_comparison(const Comparison& comparison) {
  Table table{.header = {"stage", "action", "count", "predicted ms", "measured ms", "ratio"},
              .rows = {}};
  for (const ActionRow& row : comparison.actions) {
    const std::string stage = row.pipeline.value == 0
                                  ? fmt::format("{}", row.stage.value)
                                  : fmt::format("{}:{}", row.pipeline.value, row.stage.value);
    table.rows.push_back({stage, std::string(kind_name(row.kind)), count_text(row.count),
                          number_text(ms_of(row.predicted), 3), number_text(ms_of(row.measured), 3),
                          number_text(row.ratio(), 3)});
  }
  std::string markup =
      fmt::format("<details{}><summary>By stage and action ({} rows)</summary>\n",
                  table.rows.size() <= kOpenRows ? " open" : "", table.rows.size());
  markup += html_table(table);
  markup += draw_lone_actions("predicted", comparison.only_predicted);
  markup += draw_lone_actions("measured", comparison.only_measured);
  return markup + "</details>\n";
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
  return markup +
         fmt::format("<details{}><summary>By device and kind ({} rows)</summary>\n",
                     table.rows.size() <= kOpenRows ? " open" : "", table.rows.size()) +
         html_table(table) + html_paragraph("remark", fmt::format("{}.", explain_allocator())) +
         "</details>\n";
}

std::string draw_phase(const ReportPhase& phase, std::size_t number, std::size_t& spans_left) {
  if (phase.predicted.spans.empty()) {
    return fmt::format("<h3>Phase {}, from step {}</h3>\n", number, count_text(phase.first_step)) +
           html_paragraph("remark", phase.summary) +
           html_paragraph("remark", "The run was ended before its time lines were kept.");
  }
  const Comparison comparison = compare(phase.predicted, phase.measured);
  const std::optional<Step> shown = representative_step(comparison);
  const Timeline measured = shown ? step_of(phase.measured, *shown) : Timeline{};
  std::string markup =
      fmt::format("<h3>Phase {}, from step {}</h3>\n", number, count_text(phase.first_step));
  markup += html_paragraph("remark", phase.summary);
  const std::size_t spans = phase.predicted.spans.size() + measured.spans.size();
  if (spans > spans_left) {
    markup += html_paragraph("remark", "Its time lines are left out to keep this page small.");
  } else {
    spans_left -= spans;
    const std::string title = shown ? fmt::format("Measured: step {}, the median of {}",
                                                  count_text(*shown), comparison.steps.size())
                                    : "Measured";
    markup +=
        html_figure(draw_timelines({{"Predicted", &phase.predicted}, {title, &measured}}, 960));
  }
  if (shown) {
    markup += html_paragraph(
        "", fmt::format("One step: predicted {:.3f} ms, measured {:.3f} ms (mean of the lowest "
                        "90 % of {} steps), ratio {}.",
                        ms_of(comparison.predicted_step), ms_of(comparison.measured_step),
                        comparison.steps.size(), number_text(comparison.step_ratio, 3)));
    markup += draw_comparison(comparison);
  }
  if (phase.memory) markup += draw_memory(*phase.memory);
  return markup;
}

std::string draw_run(const ReportRun& run, const RunSummary& summary, std::size_t& spans_left) {
  std::string markup =
      fmt::format("<h2>Predicted against measured: {}</h2>\n", escape_markup(run.name));
  if (!summary.phases.empty()) {
    markup += html_paragraph("lead",
                             "Ratio = predicted / measured time: below 1, the run was slower than "
                             "predicted.");
    markup += draw_phase_table(summary);
  }
  markup += draw_decisions(run.trace);
  markup += draw_transitions(run.trace);
  markup += draw_cache(run.trace);
  for (std::size_t i = 0; i < run.phases.size(); ++i) {
    markup += draw_phase(run.phases[i], i, spans_left);
  }
  return markup;
}

std::string draw_provenance(const std::vector<ReportRun>& runs) {
  Table table{.header = {"run", "what", "value"}, .rows = {}};
  for (const ReportRun& run : runs) {
    for (const auto& [key, value] : run.trace.provenance) {
      table.rows.push_back({run.name, key, value});
    }
  }
  if (table.rows.empty()) return "";
  return "<h2>Where the numbers come from</h2>\n" + html_table(table);
}

// The trace of a run that has ended, else the log of one that was interrupted.
std::filesystem::path find_record(const std::filesystem::path& root) {
  const std::filesystem::path trace = root / "trace.jsonl";
  const std::filesystem::path log = root / "events.jsonl";
  std::error_code error;
  if (std::filesystem::exists(trace, error)) return trace;
  if (std::filesystem::exists(log, error)) return log;
  throw InputError(
      root.string(), 0, "neither trace.jsonl nor events.jsonl",
      "the folder that `frazil train --out` was given: the one is there when a run has "
      "ended, the other while it lasts");
}

// Of a log: a line that was being written when the run was ended is left out, and costs are added.
FreezeTrace read_record(const std::filesystem::path& record) {
  std::string text = read_text_file(record);
  const bool is_log = record.filename() == "events.jsonl";
  if (is_log) text.resize(text.rfind('\n') + 1);
  FreezeTrace trace = parse_freeze_trace(text, record.string());
  if (is_log) trace.events = add_costs(trace);
  return trace;
}

// What was done again under another plan, after a crash.
void drop_steps(Timeline& measured, Step from) {
  std::erase_if(measured.spans, [&](const Span& span) { return span.action.step >= from; });
}

// Of an interrupted run its time lines may be missing.
ReportPhase read_phase(Step first, const PlanEvent& plan, const std::filesystem::path& place,
                       bool is_open) {
  ReportPhase phase{.first_step = first,
                    .summary = plan.summary.empty() ? plan.plan : plan.summary,
                    .predicted = {},
                    .measured = {}};
  std::error_code error;
  if (is_open && !std::filesystem::exists(place / "measured.csv", error)) return phase;
  phase.predicted = read_one_step(place / "predicted.csv");
  phase.measured = read_timeline_csv(place / "measured.csv");
  phase.memory = read_memory_record(place / "memory.json");
  return phase;
}

}  // namespace

std::string to_html(const std::string& title, const std::vector<std::string>& notes,
                    const std::vector<ReportRun>& runs) {
  std::string page = open_page(title);
  page += fmt::format("<h1>{}</h1>\n", escape_markup(title));
  page += html_paragraph("lead", "The same plan, simulated and executed, laid side by side.");
  if (!notes.empty()) {
    page += "<ul class=\"notes\">\n";
    for (const std::string& note : notes) page += "<li>" + escape_markup(note) + "</li>\n";
    page += "</ul>\n";
  }
  std::vector<RunSummary> summaries;
  summaries.reserve(runs.size());
  for (const ReportRun& run : runs) summaries.push_back(summarize(run.name, run.trace));
  if (!summaries.empty()) {
    page += html_tiles(make_tiles(summaries));
    page += draw_totals(summaries);
    page += "<h2>The course of training</h2>\n" + draw_curves(runs, summaries);
  }
  std::size_t spans_left = kMostSpans;
  for (std::size_t i = 0; i < runs.size(); ++i) page += draw_run(runs[i], summaries[i], spans_left);
  page += draw_provenance(runs);
  page += "<footer>Frazil " FRAZIL_VERSION "</footer>\n";
  return page + close_page();
}

ReportRun read_run(const std::string& folder) {
  const std::filesystem::path root(folder);
  ReportRun run;
  const std::filesystem::path full = std::filesystem::absolute(root).lexically_normal();
  run.name = (full.has_filename() ? full : full.parent_path()).filename().string();
  const std::filesystem::path record = find_record(root);
  run.trace = read_record(record);
  for (const FreezeEvent& event : run.trace.events) {
    if (const auto* plan = std::get_if<PlanEvent>(&event.what)) {
      const auto place = root / fmt::format("phase-{}", run.phases.size());
      if (!run.phases.empty()) drop_steps(run.phases.back().measured, event.step);
      run.phases.push_back(read_phase(event.step, *plan, place, run.trace.open));
    }
  }
  if (run.phases.empty()) {
    throw InputError(record.string(), 0, "no plan", "the record of a run, which begins with one");
  }
  return run;
}

}  // namespace frazil
