#include "analysis/ablation/ablation_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <utility>

#include "analysis/ablation/ablation_answer.h"
#include "analysis/ablation/ablation_charts.h"
#include "analysis/ablation/ablation_notes.h"
#include "analysis/html/html_parts.h"
#include "analysis/svg/svg.h"
#include "traces/freeze_trace.h"

namespace frazil {
namespace {

constexpr double kPercentOfOne = 100;

double in_seconds(Duration time) { return std::chrono::duration<double>(time).count(); }

std::string label_of(Arm arm) { return std::string(facts_of(arm).name); }

// A curve of an arm holds those of all its seeds; what is no number parts them.
Series series_of(const Ablation& ablation, Arm arm, Duration PairPoint::*time) {
  Series series{.name = label_of(arm), .x = {}, .y = {}};
  const double gap = std::numeric_limits<double>::quiet_NaN();
  for (const PairResult& result : ablation.results) {
    if (result.pair.arm != arm) continue;
    if (!series.x.empty()) {
      series.x.push_back(gap);
      series.y.push_back(gap);
    }
    for (const PairPoint& point : result.curve) {
      series.x.push_back(in_seconds(point.*time));
      series.y.push_back(kPercentOfOne * point.accuracy);
    }
  }
  return series;
}

std::string draw_accuracy(const Ablation& ablation, const std::string& title,
                          const std::string& x_label, Duration PairPoint::*time) {
  Chart chart{.title = title, .x_label = x_label, .y_label = "%", .series = {}, .marks = {}};
  for (const ArmRow& row : ablation.rows) {
    if (row.has_run()) chart.series.push_back(series_of(ablation, row.arm, time));
  }
  return html_figure(draw_chart(chart, kFullWidth, 360));
}

// Returns the masks of a run as a trace, for the picture of them.
FreezeTrace masks_of(const PairResult& result) {
  FreezeTrace trace;
  for (std::size_t block = 0; block < result.phases.front().mask.size(); ++block) {
    trace.blocks.push_back(fmt::format("block {}", block));
  }
  trace.steps = result.steps;
  for (const PairPhase& phase : result.phases) {
    trace.events.push_back(
        {phase.first_step, MaskEvent{FreezeMask::parse(phase.mask, "a result", 0)}});
  }
  return trace;
}

Table tabulate_phases(const PairResult& result) {
  Table table{{"from step", "mask", "plan", "devices", "time s"}, {}};
  for (const PairPhase& phase : result.phases) {
    table.rows.push_back({count_text(phase.first_step), phase.mask, phase.plan,
                          std::to_string(phase.devices), number_text(in_seconds(phase.wall), 2)});
  }
  return table;
}

// Shows the first seed of each arm that freezes.
std::string draw_courses(const Ablation& ablation) {
  std::string markup;
  for (const ArmRow& row : ablation.rows) {
    if (facts_of(row.arm).masks == ArmFacts::Masks::kNone || !row.has_run()) continue;
    const auto first = std::find_if(ablation.results.begin(), ablation.results.end(),
                                    [&](const PairResult& result) {
                                      return result.pair == ArmSeed{row.arm, row.seeds[0]};
                                    });
    if (first == ablation.results.end() || first->phases.empty()) continue;
    markup += html_details(
        fmt::format("{}, seed {}: {}", label_of(row.arm), row.seeds[0], facts_of(row.arm).one_line),
        tabulate_phases(*first), html_figure(draw_freeze_staircase(masks_of(*first), kFullWidth)));
  }
  return markup.empty() ? "" : "<h2>What froze when, and under which plans</h2>\n" + markup;
}

std::string list_runs(const Ablation& ablation) {
  Table table{{"arm", "seed", "accuracy %", "time s", "device s", "epochs", "transitions",
               "foreign cores", "state"},
              {}};
  for (const PairResult& result : ablation.results) {
    table.rows.push_back({label_of(result.pair.arm), std::to_string(result.pair.seed),
                          number_text(kPercentOfOne * result.accuracy, 2),
                          number_text(in_seconds(result.wall), 2),
                          number_text(in_seconds(result.device), 2), number_text(result.epochs, 2),
                          std::to_string(result.transitions), number_text(result.foreign_cores, 2),
                          result.state_hash});
  }
  return "<h2>Every run</h2>\n" + html_details("all seeds", table);
}

std::vector<Tile> list_tiles(const Ablation& ablation) {
  std::vector<Tile> tiles;
  for (const ArmRow& row : ablation.rows) {
    if (row.arm != Arm::kAll || !row.speed || !row.difference) continue;
    const auto interval = [](double low, double high) {
      return fmt::format("{:.2f} to {:.2f} at 95 %", low, high);
    };
    tiles.push_back({"speed of all over unfrozen", fmt::format("{:.2f}x", row.speed->mean),
                     row.speed->interval
                         ? interval(row.speed->interval->low, row.speed->interval->high)
                         : "one seed"});
    tiles.push_back({"accuracy less that of unfrozen",
                     fmt::format("{:+.2f} points", row.difference->mean),
                     row.difference->bounds
                         ? interval(row.difference->bounds->low, row.difference->bounds->high)
                         : "one seed"});
    tiles.push_back(
        {"verdict", tell_verdict(row),
         fmt::format("margin {}, {} {}", tell_points(ablation.margin_points), row.difference->pairs,
                     row.difference->pairs == 1 ? "seed" : "seeds"),
         ablation.gain ? std::string(tell_gain(*ablation.gain)) : ""});
  }
  return tiles;
}

}  // namespace

std::string to_html(const Ablation& ablation, const std::string& title) {
  std::string page = open_page(title);
  page += html_paragraph("lead",
                         "One model trained in several ways under the same seeds, each run for "
                         "real: what freezing, changing plans, replicas and caching bring.");
  page += html_notes(list_notes(ablation));
  const std::vector<Tile> tiles = list_tiles(ablation);
  if (!tiles.empty()) page += html_tiles(tiles);
  page += html_figure(draw_interval_bars(chart_speeds(ablation), kFullWidth));
  page += html_figure(draw_interval_bars(chart_differences(ablation), kFullWidth));
  page += html_paragraph("lead", tell_signs(ablation));
  page += html_table(tabulate_arms(ablation));
  page += draw_accuracy(ablation, "Accuracy over time, all seeds",
                        "seconds of steps and transitions", &PairPoint::wall);
  page += draw_accuracy(ablation, "Accuracy over device seconds, all seeds",
                        "seconds times devices of the plan", &PairPoint::device);
  page += draw_courses(ablation);
  page += list_runs(ablation);
  return page + close_page();
}

}  // namespace frazil
