#include "analysis/svg/gantt.h"

#include <fmt/format.h>

#include <sstream>

#include "analysis/html/html_parts.h"
#include "analysis/svg/gantt_memory.h"
#include "analysis/svg/svg.h"
#include "analysis/svg/svg_parts.h"
#include "planner/answers/print_idle.h"
#include "sim/simulate.h"

namespace frazil {
namespace {

constexpr int kWidth = 960;
constexpr int kMemoryHeight = 240;

std::string draw_step(const GanttInput& input) {
  const auto& [lowered, simulation] = *input.step;
  const std::vector<Device>& devices = input.setting.cluster().devices;
  const Timeline timeline =
      make_timeline(lowered.graph, simulation, lowered.actions, static_cast<int>(devices.size()));
  std::vector<std::string> names;
  names.reserve(devices.size());
  for (const Device& device : devices) names.push_back(device.name);
  return draw_timelines({{input.title, &timeline}}, kWidth, names);
}

std::string list_notes(const std::vector<std::string>& notes) {
  if (notes.empty()) return "";
  std::string markup = "<ul class=\"notes\">\n";
  for (const std::string& note : notes) markup += "<li>" + escape_markup(note) + "</li>\n";
  return markup + "</ul>\n";
}

}  // namespace

std::string gantt_svg(const GanttInput& input) {
  std::string panels = draw_step(input);
  const std::vector<Chart> charts = make_memory_charts(input);
  if (charts.empty()) return panels;
  double height = height_of(panels);
  for (const Chart& chart : charts) {
    const std::string panel = draw_chart(chart, kWidth, kMemoryHeight);
    panels += move_down(panel, height);
    height += height_of(panel);
  }
  return open_svg(kWidth, height, input.title) + panels + close_svg();
}

std::string gantt_html(const GanttInput& input) {
  std::string page =
      open_page(input.title) + list_notes(list_misfits(input)) + html_figure(draw_step(input));
  for (const Chart& chart : make_memory_charts(input)) {
    page += html_figure(draw_chart(chart, kWidth, kMemoryHeight));
  }
  std::istringstream lines(print_explanation(*input.step, input.setting));
  page += "<pre style=\"overflow-x: auto\">\n";
  for (std::string line; std::getline(lines, line);) page += escape_markup(line) + "\n";
  return page + "</pre>\n" + close_page();
}

}  // namespace frazil
