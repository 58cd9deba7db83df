#include "analysis/gantt.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <sstream>

#include "analysis/html_parts.h"
#include "analysis/svg.h"
#include "analysis/svg_parts.h"
#include "planner/print_idle.h"
#include "sim/simulate.h"

namespace frazil {
namespace {

constexpr int kWidth = 960;
constexpr int kMemoryHeight = 240;

using Curves = std::vector<std::vector<MemoryMoment>>;

bool anything_changes(const Curves& curves) {
  return std::any_of(curves.begin(), curves.end(),
                     [](const auto& curve) { return curve.size() > 1; });
}

struct Unit {
  const char* word;
  double bytes;
};

// The largest in which the most that is held is at least one.
Unit choose_unit(const Curves& curves) {
  constexpr std::array kUnits = {Unit{"GiB", 1024.0 * 1024 * 1024}, Unit{"MiB", 1024.0 * 1024},
                                 Unit{"KiB", 1024.0}};
  double most = 0;
  for (const auto& curve : curves) {
    for (const MemoryMoment& moment : curve) {
      most = std::max(most, static_cast<double>(moment.total.count));
    }
  }
  const auto unit = std::find_if(kUnits.begin(), kUnits.end(),
                                 [&](const Unit& candidate) { return most >= candidate.bytes; });
  return unit == kUnits.end() ? Unit{"bytes", 1} : *unit;
}

std::string draw_memory(const GanttInput& input, const Curves& curves) {
  const Unit unit = input.counts_chunks ? Unit{"", 1} : choose_unit(curves);
  Chart chart;
  chart.title = input.counts_chunks ? "Chunks in flight" : "Memory held";
  chart.x_label = "ms";
  chart.y_label = unit.word;
  const double end = static_cast<double>(input.step->simulation.makespan.count()) / 1e6;
  for (std::size_t d = 0; d < curves.size(); ++d) {
    Series series{.name = input.cluster->devices[d].name, .x = {}, .y = {}, .steps = true};
    // What is left at the end, when no micro-batch is in flight, is held throughout.
    const Bytes throughout = input.counts_chunks ? curves[d].back().total : Bytes{};
    for (const MemoryMoment& moment : curves[d]) {
      series.x.push_back(static_cast<double>(moment.at.time_since_epoch().count()) / 1e6);
      series.y.push_back(static_cast<double>((moment.total - throughout).count) / unit.bytes);
    }
    series.x.push_back(end);
    series.y.push_back(series.y.back());
    chart.series.push_back(series);
  }
  return draw_chart(chart, kWidth, kMemoryHeight);
}

// The height a picture says it has.
double height_of(const std::string& svg) {
  const std::string mark = "height=\"";
  return std::stod(svg.substr(svg.find(mark) + mark.size()));
}

std::string move_down(std::string svg, double y) {
  return svg.replace(0, 4, fmt::format("<svg y=\"{:.0f}\"", y));
}

std::string draw_step(const GanttInput& input) {
  const auto& [lowered, simulation] = *input.step;
  const Timeline timeline = make_timeline(lowered.graph, simulation, lowered.actions,
                                          static_cast<int>(input.cluster->devices.size()));
  return draw_timelines({{input.title, &timeline}}, kWidth);
}

Curves curves_of(const GanttInput& input) {
  return simulate_memory(input.step->lowered.graph, *input.profile, *input.cluster);
}

}  // namespace

std::string gantt_svg(const GanttInput& input) {
  std::string step = draw_step(input);
  const Curves curves = curves_of(input);
  if (!anything_changes(curves)) return step;
  const double top = height_of(step);
  return open_svg(kWidth, top + kMemoryHeight, input.title) + step +
         move_down(draw_memory(input, curves), top) + close_svg();
}

std::string gantt_html(const GanttInput& input) {
  std::string page = open_page(input.title) + html_figure(draw_step(input));
  const Curves curves = curves_of(input);
  if (anything_changes(curves)) page += html_figure(draw_memory(input, curves));
  std::istringstream lines(print_explanation(*input.step, *input.profile, *input.cluster));
  page += "<pre style=\"overflow-x: auto\">\n";
  for (std::string line; std::getline(lines, line);) page += escape_markup(line) + "\n";
  return page + "</pre>\n" + close_page();
}

}  // namespace frazil
