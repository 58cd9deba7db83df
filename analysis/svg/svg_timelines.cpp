#include "analysis/svg/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "analysis/svg/svg_frame.h"
#include "analysis/svg/svg_parts.h"
#include "analysis/svg/svg_spans.h"

namespace frazil {
namespace {

constexpr double kLeastLeft = 84;
constexpr double kLeastRight = 34;
constexpr double kTitle = 24;
constexpr double kThinLane = 11;

TimePoint first_start(const Timeline& timeline) {
  TimePoint first = timeline.spans.front().start;
  for (const Span& span : timeline.spans) first = std::min(first, span.start);
  return first;
}

struct Row {
  DeviceId device;
  Lane lane = Lane::kCompute;
  double top = 0;  // from the first row of its picture
  double height = 0;

  bool is_of(const Span& span) const { return span.device == device && span.lane == lane; }
};

// One set of rows for all pictures, so that equal things stand at equal places.
struct Layout {
  std::vector<Row> rows;
  double height = 0;
  double left = 0;
  double right = 0;
  double horizon = 0;  // ms
  double scale = 1;    // pixels per ms

  double x(double ms) const { return left + ms * scale; }
};

double compute_height(int devices, bool has_halves) {
  if (devices <= 8) return has_halves ? 32 : 22;
  if (devices <= 16) return has_halves ? 26 : 16;
  return 11;
}

Layout lay_out(const std::vector<TimelinePicture>& pictures, double width) {
  std::set<std::pair<DeviceId, Lane>> used;
  int devices = 0;
  Layout layout;
  for (const TimelinePicture& picture : pictures) {
    devices = std::max(devices, picture.timeline->devices);
    layout.horizon = std::max(layout.horizon, to_ms(makespan(*picture.timeline)));
    for (const Span& span : picture.timeline->spans) used.emplace(span.device, span.lane);
  }
  for (int i = 0; i < devices; ++i) used.emplace(DeviceId{i}, Lane::kCompute);
  const double compute = compute_height(devices, has_pairs(pictures));
  for (const auto& [device, lane] : used) {
    const bool is_compute_lane = lane == Lane::kCompute;
    if (is_compute_lane && !layout.rows.empty()) layout.height += 5;
    const double height = is_compute_lane ? compute : kThinLane;
    layout.rows.push_back({device, lane, layout.height, height});
    layout.height += height + 1;
  }
  if (layout.horizon <= 0) layout.horizon = 1;
  const Margins margins = margins_of(width);
  layout.left = std::max(margins.left, kLeastLeft);
  layout.right = width - std::max(margins.right, kLeastRight);
  layout.scale = (layout.right - layout.left) / layout.horizon;
  return layout;
}

std::string draw_rows(const Layout& layout, const std::vector<std::string>& devices, double top) {
  const auto letters = static_cast<std::size_t>((layout.left - 8) / text_width("n"));
  std::string svg;
  for (const Row& row : layout.rows) {
    const double y = top + row.top;
    svg += fmt::format("<path class=\"track\" d=\"M{} {}H{}v{}H{}z\"/>\n", coordinate(layout.left),
                       coordinate(y), coordinate(layout.right), coordinate(row.height),
                       coordinate(layout.left));
    const double baseline = y + row.height / 2 + 3.8;
    if (row.lane == Lane::kCompute) {
      svg += draw_text(layout.left - 8, baseline, Anchor::kEnd, row.height < 12 ? "tiny" : "",
                       shorten(device_name(devices, row.device), letters));
    } else {
      svg += draw_text(layout.left - 8, baseline - 0.5, Anchor::kEnd, "tiny", lane_name(row.lane));
    }
  }
  return svg;
}

std::string draw_heading(const TimelinePicture& picture, double top, double right) {
  const Timeline& timeline = *picture.timeline;
  return draw_text(0, top + 15, Anchor::kStart, "title", picture.title) +
         draw_text(right, top + 15, Anchor::kEnd, "soft",
                   timeline.spans.empty()
                       ? std::string("nothing recorded")
                       : fmt::format("makespan {:.3f} ms", to_ms(makespan(timeline))));
}

std::string describe(const Span& span, const std::string& device, double start_ms) {
  return fmt::format("{} on {} ({}): {:.3f} to {:.3f} ms, {:.3f} ms", to_text(span.action), device,
                     lane_name(span.lane), start_ms, start_ms + to_ms(span.duration()),
                     to_ms(span.duration()));
}

std::string draw_spans(const Timeline& timeline, const Layout& layout, const DeviceStages& stages,
                       const std::vector<std::string>& devices, double rows_top) {
  std::string svg;
  if (timeline.spans.empty()) return svg;
  const TimePoint origin = first_start(timeline);
  for (const Span& span : timeline.spans) {
    const auto row = std::find_if(layout.rows.begin(), layout.rows.end(),
                                  [&span](const Row& candidate) { return candidate.is_of(span); });
    if (row == layout.rows.end()) continue;
    const double start_ms = to_ms(span.start - origin);
    // Neighbours are a hair apart if there is room for it.
    double width = to_ms(span.duration()) * layout.scale;
    if (width > 2) width -= 0.6;
    svg += draw_span(span, stages, {layout.x(start_ms), rows_top + row->top, width, row->height},
                     describe(span, device_name(devices, span.device), start_ms));
  }
  const double end = layout.x(to_ms(makespan(timeline)));
  svg += fmt::format("<path class=\"mark\" d=\"M{} {}v{}\"/>\n", coordinate(end),
                     coordinate(rows_top - 3), coordinate(layout.height + 6));
  return svg;
}

std::string draw_time_axis(const Layout& layout, const std::vector<double>& rows_tops,
                           double bottom, double width) {
  const Ticks ticks = make_ticks(0, layout.horizon, width >= 800 ? 10 : 5);
  std::string svg = "<g class=\"ticks\">\n";
  for (const double value : ticks.values) {
    const std::string x = coordinate(layout.x(value));
    // The lines run behind the spans of every picture, so that the eye carries a time from one to
    // another.
    std::string line = fmt::format("M{} {}v4", x, coordinate(bottom));
    for (const double top : rows_tops) {
      line += fmt::format("M{} {}v{}", x, coordinate(top - 2), coordinate(layout.height + 4));
    }
    svg += fmt::format("<path class=\"grid\" d=\"{}\"/>\n", line);
    svg += draw_text(layout.x(value), bottom + 17, Anchor::kMiddle, "soft", ticks.text(value));
  }
  svg += "</g>\n";
  svg += fmt::format("<path class=\"axis\" d=\"M{} {}H{}\"/>\n", coordinate(layout.left),
                     coordinate(bottom), coordinate(layout.right));
  return svg + draw_text(width, bottom + 17, Anchor::kEnd, "soft", "ms");
}

}  // namespace

std::string draw_timelines(const std::vector<TimelinePicture>& pictures, int width,
                           const std::vector<std::string>& devices) {
  const double full = width;
  const Layout layout = lay_out(pictures, full);
  const DeviceStages stages(pictures);
  const Legend legend = draw_legend(list_kinds(pictures, stages), 0, full, 0);
  const double top = legend.height + 6;
  const double each = kTitle + layout.height + 12;
  const double bottom = top + each * static_cast<double>(pictures.size()) - 6;
  std::string label;
  for (const TimelinePicture& picture : pictures) {
    label += (label.empty() ? "" : ", ") + picture.title;
  }
  std::string behind;
  std::string spans;
  std::vector<double> rows_tops;
  double y = top;
  for (const TimelinePicture& picture : pictures) {
    behind += draw_heading(picture, y, layout.right) + draw_rows(layout, devices, y + kTitle);
    spans += draw_spans(*picture.timeline, layout, stages, devices, y + kTitle);
    rows_tops.push_back(y + kTitle);
    y += each;
  }
  const Frame frame{.left = layout.left,
                    .right = layout.right,
                    .top = top,
                    .bottom = bottom,
                    .x_range = {0, layout.horizon},
                    .y_range = {}};
  return open_svg(full, bottom + 24, label) + legend.svg + behind +
         draw_time_axis(layout, rows_tops, bottom, full) +
         fmt::format("<g class=\"plot\"{}>\n", describe_frame(frame, false)) + spans + "</g>\n" +
         close_svg();
}

}  // namespace frazil
