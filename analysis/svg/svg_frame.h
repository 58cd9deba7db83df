#pragma once
// Where values lie in a picture, and its axes. Wide pictures share their margins, so that a time or
// a step has one place in all that stand below each other.

#include <limits>
#include <string>

namespace frazil {

struct Margins {
  double left = 0;
  double right = 0;
};
Margins margins_of(double width);

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  bool empty() const { return low > high; }
  void take(double value);  // leaves out what is no number
};

void widen_if_flat(Range& range);
// Zero belongs into the picture unless all values lie far from it; ends are round numbers.
void round_ends(Range& range, int ticks);

// Values to pixels.
struct Frame {
  double left = 0;
  double right = 0;
  double top = 0;
  double bottom = 0;
  Range x_range;
  Range y_range;
  int y_ticks = 5;  // about so many

  double x(double value) const {
    return left + (value - x_range.low) / (x_range.high - x_range.low) * (right - left);
  }
  double y(double value) const {
    return bottom - (value - y_range.low) / (y_range.high - y_range.low) * (bottom - top);
  }
};

std::string draw_x_axis(const Frame& frame, const std::string& label);
std::string draw_y_axis(const Frame& frame);

}  // namespace frazil
