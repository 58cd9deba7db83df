#include "analysis/svg/svg_frame.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/svg/svg_parts.h"

namespace frazil {

Margins margins_of(double width) {
  return width >= 800 ? Margins{.left = 104, .right = 34} : Margins{.left = 52, .right = 18};
}

void Range::take(double value) {
  if (!std::isfinite(value)) return;
  low = std::min(low, value);
  high = std::max(high, value);
}

void widen_if_flat(Range& range) {
  if (range.low == range.high) {
    const double more = std::max(std::abs(range.low) * 0.1, 1e-6);
    range.low -= more;
    range.high += more;
  }
}

void round_ends(Range& range, int ticks) {
  if (range.low > 0 && range.low < 0.75 * range.high) range.low = 0;
  widen_if_flat(range);
  const double spacing = make_ticks(range.low, range.high, ticks).spacing;
  range.low = std::floor(range.low / spacing + 1e-9) * spacing;
  range.high = std::ceil(range.high / spacing - 1e-9) * spacing;
}

std::string draw_x_axis(const Frame& frame, const std::string& label) {
  const Ticks ticks =
      make_ticks(frame.x_range.low, frame.x_range.high, frame.right - frame.left >= 600 ? 10 : 6);
  std::string svg;
  for (const double value : ticks.values) {
    svg += fmt::format("<path class=\"axis\" d=\"M{} {}v4\"/>\n", coordinate(frame.x(value)),
                       coordinate(frame.bottom));
    svg += draw_text(frame.x(value), frame.bottom + 17, Anchor::kMiddle, "soft", ticks.text(value));
  }
  svg += fmt::format("<path class=\"axis\" d=\"M{} {}H{}\"/>\n", coordinate(frame.left),
                     coordinate(frame.bottom), coordinate(frame.right));
  svg +=
      draw_text((frame.left + frame.right) / 2, frame.bottom + 33, Anchor::kMiddle, "soft", label);
  return svg;
}

std::string draw_y_axis(const Frame& frame) {
  const Ticks ticks = make_ticks(frame.y_range.low, frame.y_range.high, frame.y_ticks);
  std::string svg;
  for (const double value : ticks.values) {
    svg += fmt::format("<path class=\"grid\" d=\"M{} {}H{}\"/>\n", coordinate(frame.left),
                       coordinate(frame.y(value)), coordinate(frame.right));
    svg += draw_text(frame.left - 8, frame.y(value) + 4, Anchor::kEnd, "soft", ticks.text(value));
  }
  return svg;
}

}  // namespace frazil
