#include "analysis/svg/svg_frame.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "analysis/svg/svg_parts.h"

namespace frazil {

namespace {

// Returns the round numbers 1, 2 and 5 x 10^k within a range; over many decades, 10^k alone.
std::vector<double> log_ticks(const Range& range) {
  const double first = std::floor(std::log10(range.low) - 1e-9);
  const double last = std::ceil(std::log10(range.high) + 1e-9);
  std::vector<double> values;
  for (double power = first; power <= last; ++power) {
    for (const double digit : {1.0, 2.0, 5.0}) {
      if (digit != 1 && last - first > 4) continue;
      const double value = digit * std::pow(10.0, power);
      const bool inside = value > range.low * (1 - 1e-9) && value < range.high * (1 + 1e-9);
      if (inside) values.push_back(value);
    }
  }
  return values;
}

}  // namespace

double Frame::y(double value) const {
  const auto scaled = [this](double number) { return is_log ? std::log10(number) : number; };
  if (is_log && !(value > 0)) return std::numeric_limits<double>::quiet_NaN();
  const double low = scaled(y_range.low);
  return bottom - (scaled(value) - low) / (scaled(y_range.high) - low) * (bottom - top);
}

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

void round_log_ends(Range& range) {
  const auto rounded = [](double value, bool up) {
    const double power = std::pow(10.0, std::floor(std::log10(value) + 1e-12));
    const double digit = value / power;
    for (const double step : {1.0, 2.0, 5.0, 10.0}) {
      if (up && step >= digit * (1 - 1e-9)) return step * power;
    }
    for (const double step : {5.0, 2.0}) {
      if (step <= digit * (1 + 1e-9)) return step * power;
    }
    return power;
  };
  range.low = rounded(range.low, false);
  range.high = rounded(range.high, true);
  if (range.low == range.high) range.high *= 10;
}

std::string describe_frame(const Frame& frame, bool has_y) {
  std::string text = fmt::format(" data-frame=\"{} {} {} {} {:.9g} {:.9g}", coordinate(frame.left),
                                 coordinate(frame.right), coordinate(frame.top),
                                 coordinate(frame.bottom), frame.x_range.low, frame.x_range.high);
  if (has_y) text += fmt::format(" {:.9g} {:.9g}", frame.y_range.low, frame.y_range.high);
  return text + (frame.is_log ? "\" data-log=\"y\"" : "\"");
}

std::string draw_x_axis(const Frame& frame, const std::string& label) {
  const Ticks ticks =
      make_ticks(frame.x_range.low, frame.x_range.high, frame.right - frame.left >= 600 ? 10 : 6);
  std::string svg = "<g class=\"ticks\">\n";
  for (const double value : ticks.values) {
    svg += fmt::format("<path class=\"axis\" d=\"M{} {}v4\"/>\n", coordinate(frame.x(value)),
                       coordinate(frame.bottom));
    svg += draw_text(frame.x(value), frame.bottom + 17, Anchor::kMiddle, "soft", ticks.text(value));
  }
  svg += "</g>\n";
  svg += fmt::format("<path class=\"axis\" d=\"M{} {}H{}\"/>\n", coordinate(frame.left),
                     coordinate(frame.bottom), coordinate(frame.right));
  svg +=
      draw_text((frame.left + frame.right) / 2, frame.bottom + 33, Anchor::kMiddle, "soft", label);
  return svg;
}

std::string draw_y_axis(const Frame& frame) {
  const Ticks ticks = make_ticks(frame.y_range.low, frame.y_range.high, frame.y_ticks);
  std::string svg;
  for (const double value : frame.is_log ? log_ticks(frame.y_range) : ticks.values) {
    const std::string word = frame.is_log ? fmt::format("{:g}", value) : ticks.text(value);
    svg += fmt::format("<path class=\"grid\" d=\"M{} {}H{}\"/>\n", coordinate(frame.left),
                       coordinate(frame.y(value)), coordinate(frame.right));
    svg += draw_text(frame.left - 8, frame.y(value) + 4, Anchor::kEnd, "soft", word);
  }
  return svg;
}

}  // namespace frazil
