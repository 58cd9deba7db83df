#include "analysis/svg/interval_bars.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/svg/svg_frame.h"
#include "analysis/svg/svg_parts.h"

namespace frazil {
namespace {

constexpr double kRow = 24;
constexpr double kHalfBar = 7;
constexpr double kHalfDiamond = 5;
constexpr int kTicks = 8;

Range range_of(const IntervalChart& chart) {
  Range range;
  range.take(chart.base);
  for (const auto& [value, word] : chart.levels) range.take(value);
  for (const IntervalBar& bar : chart.bars) {
    range.take(bar.value);
    for (const double sample : bar.samples) range.take(sample);
    if (bar.predicted) range.take(*bar.predicted);
  }
  widen_if_flat(range);
  // With few samples an interval may be a hundred times as wide as all that was measured.
  const double room = range.high - range.low;
  Range wide = range;
  for (const IntervalBar& bar : chart.bars) {
    if (!bar.interval) continue;
    wide.take(std::max(bar.interval->first, range.low - room / 2));
    wide.take(std::min(bar.interval->second, range.high + room / 2));
  }
  const Ticks ticks = make_ticks(wide.low, wide.high, kTicks);
  return {wide.low - ticks.spacing / 2, wide.high + ticks.spacing / 2};
}

std::string describe_bar(const IntervalBar& bar) {
  std::string text = fmt::format("{}: {:.3g}", escape_markup(bar.label), bar.value);
  if (bar.interval) {
    text += fmt::format(", interval {:.3g} to {:.3g}", bar.interval->first, bar.interval->second);
  }
  if (bar.predicted) text += fmt::format(", predicted {:.3g}", *bar.predicted);
  return text;
}

std::string draw_whisker(const IntervalBar& bar, const Frame& frame, double y) {
  if (!bar.interval) return "";
  const auto inside = [&](double value) {
    return coordinate(frame.x(std::clamp(value, frame.x_range.low, frame.x_range.high)));
  };
  std::string svg =
      fmt::format("<path class=\"axis\" d=\"M{} {}H{}\"/>", inside(bar.interval->first),
                  coordinate(y), inside(bar.interval->second));
  for (const double end : {bar.interval->first, bar.interval->second}) {
    if (end < frame.x_range.low || end > frame.x_range.high) continue;
    svg += fmt::format("<path class=\"axis\" d=\"M{} {}v10\"/>", inside(end), coordinate(y - 5));
  }
  return svg;
}

std::string draw_row(const IntervalBar& bar, const IntervalChart& chart, const Frame& frame,
                     double y) {
  const double from = frame.x(chart.base);
  const double to = frame.x(bar.value);
  std::string svg =
      fmt::format("<g><title>{}</title><g class=\"s0 c2\"><path d=\"M{} {}H{}v{:.0f}H{}z\"/></g>",
                  describe_bar(bar), coordinate(from), coordinate(y - kHalfBar), coordinate(to),
                  2 * kHalfBar, coordinate(from));
  svg += draw_whisker(bar, frame, y);
  for (const double sample : bar.samples) {
    svg += fmt::format(
        "<g class=\"s0\"><path d=\"M{} {}m-2.5 0a2.5 2.5 0 1 0 5 0a2.5 2.5 0 1 0 -5 "
        "0z\"/></g>",
        coordinate(frame.x(sample)), coordinate(y));
  }
  if (bar.predicted) {
    const double x = frame.x(*bar.predicted);
    svg += fmt::format(
        "<g class=\"s2\"><path class=\"line\" d=\"M{0} {1}l{2:.0f} {2:.0f}l-{2:.0f} "
        "{2:.0f}l-{2:.0f} "
        "-{2:.0f}z\"/></g>",
        coordinate(x), coordinate(y - kHalfDiamond), kHalfDiamond);
  }
  return svg + "</g>\n";
}

std::string draw_levels(const IntervalChart& chart, const Frame& frame) {
  std::string svg;
  for (const auto& [value, word] : chart.levels) {
    const double x = frame.x(value);
    svg += fmt::format("<path class=\"mark\" d=\"M{} {}V{}\"/>\n", coordinate(x),
                       coordinate(frame.top), coordinate(frame.bottom));
    // Words of levels on both sides of the base keep apart.
    const bool is_left = value < chart.base;
    svg += draw_text(is_left ? x - 3 : x + 3, frame.top - 3,
                     is_left ? Anchor::kEnd : Anchor::kStart, "tiny", word);
  }
  return svg;
}

}  // namespace

std::string draw_interval_bars(const IntervalChart& chart, int width) {
  const Margins margins = margins_of(width);
  std::string title = draw_text(0, 14, Anchor::kStart, "title", chart.title);
  if (chart.bars.empty()) {
    return open_svg(width, 44, chart.title) + title +
           draw_text(0, 34, Anchor::kStart, "soft", "no data") + close_svg();
  }
  Frame frame{.left = margins.left,
              .right = width - margins.right,
              .top = 40,
              .x_range = range_of(chart),
              .y_range = {0, 1}};
  frame.bottom = frame.top + kRow * static_cast<double>(chart.bars.size()) + 4;
  std::string rows;
  double y = frame.top + kRow / 2 + 2;
  for (const IntervalBar& bar : chart.bars) {
    rows += draw_text(frame.left - 8, y + 4, Anchor::kEnd, "", shorten(bar.label, 15));
    rows += draw_row(bar, chart, frame, y);
    y += kRow;
  }
  return open_svg(width, frame.bottom + 40, chart.title) + title + draw_levels(chart, frame) +
         rows + draw_x_axis(frame, chart.x_label) + close_svg();
}

}  // namespace frazil
