#include "analysis/ablation/ablation_charts.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <sstream>
#include <utility>

#include "analysis/ablation/ablation_notes.h"
#include "analysis/ablation/control_origin.h"
#include "analysis/svg/svg_parts.h"

namespace frazil {
namespace {

constexpr double kPointsOfOne = 100;
constexpr double kTitleBase = 16;
constexpr double kLine = 17;        // from one line of words to the next
constexpr double kBelowChart = 14;  // between charts
constexpr double kSmallLetter = 11;
constexpr double kTitleLetter = 13;

double count_seconds(Duration time) { return std::chrono::duration<double>(time).count(); }

std::string name_arm(Arm arm) { return std::string(facts_of(arm).name); }

bool has_several_seeds(const Ablation& ablation) {
  return std::any_of(ablation.rows.begin(), ablation.rows.end(),
                     [](const ArmRow& row) { return row.seeds.size() > 1; });
}

// Returns value(of arm, of unfrozen) for each seed that both have; nothing if all arms have one.
template <class Value>
std::vector<double> sample_pairs(const Ablation& ablation, Arm arm, const Value& value) {
  std::vector<double> samples;
  if (!has_several_seeds(ablation)) return samples;
  for (const PairResult& result : ablation.results) {
    if (result.pair.arm != arm) continue;
    const ArmSeed unfrozen{Arm::kUnfrozen, result.pair.seed};
    if (const PairResult* const base = find_result(ablation.results, unfrozen)) {
      samples.push_back(value(result, *base));
    }
  }
  return samples;
}

std::string tell_size(const Ablation& ablation) {
  const std::size_t seeds = ablation.seeds.size();
  std::string told = fmt::format("{} {}", seeds, seeds == 1 ? "seed" : "seeds");
  if (ablation.test_samples > 0) {
    told += fmt::format("; accuracy on {} test samples", ablation.test_samples);
  }
  return told + fmt::format("; margin {}", tell_points(ablation.margin_points));
}

// Returns the lines of a text in small letters. A word that is wider than a line has one for
// itself.
std::vector<std::string> wrap_words(const std::string& text, double width) {
  std::vector<std::string> lines;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const std::string longer = lines.empty() ? word : lines.back() + " " + word;
    if (lines.empty() || text_width(longer, kSmallLetter) > width) {
      lines.push_back(word);
    } else {
      lines.back() = longer;
    }
  }
  return lines;
}

}  // namespace

IntervalChart chart_speeds(const Ablation& ablation) {
  IntervalChart chart{.title = "Speed over unfrozen",
                      .x_label = "wall time of unfrozen / wall time of the arm; 95 % interval",
                      .base = 1,
                      .bars = {},
                      .levels = {{1, "as fast"}}};
  for (const ArmRow& row : ablation.rows) {
    if (!row.speed) continue;
    IntervalBar bar{.label = name_arm(row.arm), .value = row.speed->mean};
    if (row.speed->interval) bar.interval = {row.speed->interval->low, row.speed->interval->high};
    bar.samples =
        sample_pairs(ablation, row.arm, [](const PairResult& own, const PairResult& base) {
          return count_seconds(base.wall) / count_seconds(own.wall);
        });
    bar.predicted = row.predicted_speed;
    chart.bars.push_back(std::move(bar));
  }
  return chart;
}

IntervalChart chart_differences(const Ablation& ablation) {
  IntervalChart chart{.title = "Accuracy less that of unfrozen",
                      .x_label = "percentage points; 95 % interval",
                      .base = 0,
                      .bars = {},
                      .levels = {{0, "as accurate"}, {-ablation.margin_points, "margin"}}};
  for (const ArmRow& row : ablation.rows) {
    if (!row.difference) continue;
    IntervalBar bar{.label = name_arm(row.arm), .value = row.difference->mean};
    if (row.difference->bounds) {
      bar.interval = {row.difference->bounds->low, row.difference->bounds->high};
    }
    bar.samples =
        sample_pairs(ablation, row.arm, [](const PairResult& own, const PairResult& base) {
          return kPointsOfOne * (own.accuracy - base.accuracy);
        });
    chart.bars.push_back(std::move(bar));
  }
  return chart;
}

std::string tell_signs(const Ablation& ablation) {
  std::string signs = has_several_seeds(ablation)
                          ? "A bar is a mean over the seeds, a dot is a seed"
                          : "A bar is what one seed gave";
  const bool is_predicted =
      std::any_of(ablation.rows.begin(), ablation.rows.end(),
                  [](const ArmRow& row) { return row.speed && row.predicted_speed; });
  if (is_predicted) signs += ", a hollow diamond is what was predicted";
  return signs + ".";
}

std::string draw_ablation(const Ablation& ablation, const std::string& title, int width) {
  double height = kTitleBase;
  std::string inside;
  const auto write = [&](const char* css_class, const std::string& line) {
    inside += draw_text(0, height, Anchor::kStart, css_class, line);
    height += kLine;
  };
  write("title", shorten(title, static_cast<std::size_t>(width / text_width("x", kTitleLetter))));
  write("small", tell_size(ablation));
  for (const IntervalChart& chart : {chart_speeds(ablation), chart_differences(ablation)}) {
    const std::string svg = draw_interval_bars(chart, width);
    inside += move_down(svg, height);
    height += height_of(svg) + kBelowChart;
  }
  write("small", tell_signs(ablation));
  for (const std::string& note : list_notes(ablation)) {
    for (const std::string& line : wrap_words(note, width)) write("small", line);
  }
  return open_svg(width, height, title) + inside + close_svg();
}

}  // namespace frazil
