#include "analysis/svg/gantt.h"

#include <fmt/format.h>

#include <sstream>

#include "analysis/html/html_parts.h"
#include "analysis/svg/gantt_memory.h"
#include "analysis/svg/svg.h"
#include "analysis/svg/svg_parts.h"
#include "planner/answers/print_idle.h"
#include "planner/prediction/doubts.h"
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

std::vector<std::string> lines_of_text(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// Sets lines of text. Sentences wrap; rows of a table, which have two blanks between their columns,
// do not.
std::string set_lines(const std::string& text) {
  std::string markup = "<pre class=\"lines\">";
  for (const std::string& line : lines_of_text(text)) {
    const bool is_row = line.find("  ") != std::string::npos;
    markup += fmt::format("<span{}>{}</span>", is_row ? " class=\"row\"" : "", escape_markup(line));
  }
  return markup + "</pre>\n";
}

// Returns what does not fit, and what the picture rests on that was not measured.
std::vector<std::string> list_all_notes(const GanttInput& input) {
  std::vector<std::string> notes = list_misfits(input);
  const ModelProfile& profile = input.setting.profile();
  if (notes.empty()) notes = lines_of_text(fits_if(profile, "fits"));
  const std::vector<std::string> doubts = lines_of_text(list_doubts(profile));
  notes.insert(notes.end(), doubts.begin(), doubts.end());
  return notes;
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
      open_page(input.title) + html_notes(list_all_notes(input)) + html_figure(draw_step(input));
  for (const Chart& chart : make_memory_charts(input)) {
    page += html_figure(draw_chart(chart, kWidth, kMemoryHeight));
  }
  return page + set_lines(print_explanation(*input.step, input.setting)) + close_page();
}

}  // namespace frazil
