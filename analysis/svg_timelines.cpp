#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "analysis/svg.h"
#include "analysis/svg_parts.h"

namespace frazil {
namespace {

constexpr double kLeft = 84;
constexpr double kRight = 34;
constexpr double kTitle = 24;
constexpr double kThinLane = 11;

// How one kind is drawn. Kinds that mean the same to a reader share a class.
struct Look {
  const char* css_class;
  const char* word;
};

Look look_of(ActionKind kind) {
  switch (kind) {
    case ActionKind::kForward:
    case ActionKind::kPair:  // drawn as its halves
      return {"F", "F forward"};
    case ActionKind::kBackward:
      return {"B", "B backward"};
    case ActionKind::kBackwardInput:
      return {"I", "I backward of inputs"};
    case ActionKind::kBackwardWeight:
      return {"W", "W backward of weights"};
    case ActionKind::kRecompute:
      return {"R", "R recompute"};
    case ActionKind::kUpdate:
      return {"U", "U update"};
    case ActionKind::kReduceGradients:
    case ActionKind::kUnshard:
    case ActionKind::kReshard:
      return {"G", "REDUCE collective"};
    case ActionKind::kSendForward:
    case ActionKind::kReceiveForward:
    case ActionKind::kSendBackward:
    case ActionKind::kReceiveBackward:
      return {"S", "SEND / RECV"};
    case ActionKind::kBarrier:
    case ActionKind::kMove:
      return {"M", "MOVE / BARRIER"};
  }
  return {"M", "MOVE / BARRIER"};
}

double to_ms(Duration duration) { return static_cast<double>(duration.count()) / 1e6; }

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
  double horizon = 0;  // ms
  double scale = 1;    // pixels per ms

  double x(double ms) const { return kLeft + ms * scale; }
};

double compute_height(int devices) {
  if (devices <= 8) return 22;
  return devices <= 16 ? 16 : 11;
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
  for (const auto& [device, lane] : used) {
    const bool is_compute_lane = lane == Lane::kCompute;
    if (is_compute_lane && !layout.rows.empty()) layout.height += 5;
    const double height = is_compute_lane ? compute_height(devices) : kThinLane;
    layout.rows.push_back({device, lane, layout.height, height});
    layout.height += height + 1;
  }
  if (layout.horizon <= 0) layout.horizon = 1;
  layout.scale = (width - kLeft - kRight) / layout.horizon;
  return layout;
}

std::string draw_box(double x, double y, double width, double height) {
  const std::string drawn = coordinate(std::max(width, 0.6));
  return fmt::format("<path d=\"M{} {}h{}v{}h-{}z\"/>", coordinate(x), coordinate(y), drawn,
                     coordinate(height), drawn);
}

// "F0", or "0" where that does not fit, or nothing.
std::string fitting_label(const Action& action, double width, double height) {
  if (height < 16) return "";
  std::string number;
  if (action.micro_batches) {
    const MicroBatches& range = *action.micro_batches;
    number = fmt::format("{}", range.first.value);
    if (range.count() > 1) number += fmt::format("-{}", range.last.value);
  }
  const std::string full = std::string(kind_name(action.kind)) + number;
  for (const std::string& label : {full, number}) {
    if (text_width(label, 10.5) + 3 <= width) return label;
  }
  return "";
}

std::string draw_action(const Action& action, double x, double y, double width, double height) {
  std::string svg = fmt::format("<g class=\"{}\">", look_of(action.kind).css_class);
  svg += draw_box(x, y, width, height);
  const std::string label = fitting_label(action, width, height);
  if (!label.empty()) {
    svg += fmt::format("<text class=\"in\" x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
                       coordinate(x + width / 2), coordinate(y + height / 2 + 3.8), label);
  }
  return svg + "</g>";
}

std::string draw_span(const Span& span, double start_ms, const Layout& layout, double x, double y,
                      double height) {
  std::string svg =
      fmt::format("<g><title>{} on device {} ({}): {:.3f} to {:.3f} ms, {:.3f} ms</title>",
                  escape_markup(to_text(span.action)), span.device.value, lane_name(span.lane),
                  start_ms, start_ms + to_ms(span.duration()), to_ms(span.duration()));
  // A hair of paper between neighbours, where there is room for it.
  double width = to_ms(span.duration()) * layout.scale;
  if (width > 2) width -= 0.6;
  const auto* pair = std::get_if<ActionPair>(&span.action.detail);
  if (pair == nullptr || pair->halves.empty()) {
    svg += draw_action(span.action, x, y, width, height);
  } else {
    const double part = height / static_cast<double>(pair->halves.size());
    for (std::size_t i = 0; i < pair->halves.size(); ++i) {
      svg += draw_action(pair->halves[i], x, y + part * static_cast<double>(i), width, part);
    }
  }
  return svg + "</g>\n";
}

std::string draw_rows(const Layout& layout, double top, double right) {
  std::string svg;
  for (const Row& row : layout.rows) {
    const double y = top + row.top;
    svg += fmt::format("<path class=\"track\" d=\"M{} {}H{}v{}H{}z\"/>\n", coordinate(kLeft),
                       coordinate(y), coordinate(right), coordinate(row.height), coordinate(kLeft));
    const double baseline = y + row.height / 2 + 3.8;
    if (row.lane == Lane::kCompute) {
      svg += draw_text(kLeft - 8, baseline, Anchor::kEnd, row.height < 12 ? "tiny" : "",
                       fmt::format("device {}", row.device.value));
    } else {
      svg += draw_text(kLeft - 8, baseline - 0.5, Anchor::kEnd, "tiny", lane_name(row.lane));
    }
  }
  return svg;
}

std::string draw_heading(const TimelinePicture& picture, double top, double width) {
  const Timeline& timeline = *picture.timeline;
  return draw_text(0, top + 15, Anchor::kStart, "title", picture.title) +
         draw_text(width - kRight, top + 15, Anchor::kEnd, "soft",
                   timeline.spans.empty()
                       ? std::string("nothing recorded")
                       : fmt::format("makespan {:.3f} ms", to_ms(makespan(timeline))));
}

std::string draw_spans(const Timeline& timeline, const Layout& layout, double rows_top) {
  std::string svg;
  if (timeline.spans.empty()) return svg;
  const TimePoint origin = first_start(timeline);
  for (const Span& span : timeline.spans) {
    const auto row = std::find_if(layout.rows.begin(), layout.rows.end(),
                                  [&span](const Row& candidate) { return candidate.is_of(span); });
    if (row == layout.rows.end()) continue;
    const double start_ms = to_ms(span.start - origin);
    svg += draw_span(span, start_ms, layout, layout.x(start_ms), rows_top + row->top, row->height);
  }
  const double end = layout.x(to_ms(makespan(timeline)));
  svg += fmt::format("<path class=\"mark\" d=\"M{} {}v{}\"/>\n", coordinate(end),
                     coordinate(rows_top - 3), coordinate(layout.height + 6));
  return svg;
}

std::string draw_time_axis(const Layout& layout, const std::vector<double>& rows_tops,
                           double bottom, double width) {
  const Ticks ticks = make_ticks(0, layout.horizon, width >= 800 ? 10 : 5);
  std::string svg;
  for (const double value : ticks.values) {
    const std::string x = coordinate(layout.x(value));
    // Behind the spans of every picture: the eye carries a time from one to the other.
    std::string line = fmt::format("M{} {}v4", x, coordinate(bottom));
    for (const double top : rows_tops) {
      line += fmt::format("M{} {}v{}", x, coordinate(top - 2), coordinate(layout.height + 4));
    }
    svg += fmt::format("<path class=\"grid\" d=\"{}\"/>\n", line);
    svg += draw_text(layout.x(value), bottom + 17, Anchor::kMiddle, "soft", ticks.text(value));
  }
  svg += fmt::format("<path class=\"axis\" d=\"M{} {}H{}\"/>\n", coordinate(kLeft),
                     coordinate(bottom), coordinate(width - kRight));
  return svg + draw_text(width, bottom + 17, Anchor::kEnd, "soft", "ms");
}

void collect_looks(const Action& action, std::vector<LegendEntry>& entries) {
  if (const auto* pair = std::get_if<ActionPair>(&action.detail)) {
    for (const Action& half : pair->halves) collect_looks(half, entries);
    return;
  }
  const Look look = look_of(action.kind);
  const bool known = std::any_of(entries.begin(), entries.end(), [&look](const LegendEntry& entry) {
    return entry.css_class == look.css_class;
  });
  if (!known) entries.push_back({look.css_class, look.word});
}

std::vector<LegendEntry> legend_of(const std::vector<TimelinePicture>& pictures) {
  std::vector<LegendEntry> entries;
  for (const TimelinePicture& picture : pictures) {
    for (const Span& span : picture.timeline->spans) collect_looks(span.action, entries);
  }
  constexpr std::string_view kOrder = "FBIWRUGSM";
  std::sort(entries.begin(), entries.end(), [&](const LegendEntry& a, const LegendEntry& b) {
    return kOrder.find(a.css_class) < kOrder.find(b.css_class);
  });
  return entries;
}

}  // namespace

std::string draw_timelines(const std::vector<TimelinePicture>& pictures, int width) {
  const double full = width;
  const Layout layout = lay_out(pictures, full);
  const Legend legend = draw_legend(legend_of(pictures), 0, full, 0);
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
    behind += draw_heading(picture, y, full) + draw_rows(layout, y + kTitle, full - kRight);
    spans += draw_spans(*picture.timeline, layout, y + kTitle);
    rows_tops.push_back(y + kTitle);
    y += each;
  }
  return open_svg(full, bottom + 24, label) + legend.svg + behind +
         draw_time_axis(layout, rows_tops, bottom, full) + spans + close_svg();
}

}  // namespace frazil
