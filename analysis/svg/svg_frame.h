#pragma once
// Places values in a picture and draws its axes. Wide pictures share their margins, so that a time
// or a step has one place in all pictures that stand below each other.

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
  void take(double value);  // leaves out NaN and infinities
};

void widen_if_flat(Range& range);
// Rounds both ends to round numbers; the range begins at zero unless all values lie far above it.
void round_ends(Range& range, int ticks);
// Rounds both ends to 1, 2 or 5 x 10^k. Requires: a range above zero.
void round_log_ends(Range& range);

// Maps values to pixels.
struct Frame {
  double left = 0;
  double right = 0;
  double top = 0;
  double bottom = 0;
  Range x_range;
  Range y_range;
  int y_ticks = 5;      // wanted; there are about as many
  bool is_log = false;  // y is drawn by its logarithm; its range lies above zero

  double x(double value) const {
    return left + (value - x_range.low) / (x_range.high - x_range.low) * (right - left);
  }
  // Returns NaN for a value that a logarithmic axis does not have.
  double y(double value) const;
};

// Says where the curves of a frame lie, as an attribute that page.js reads: left, right, top and
// bottom in pixels, then the ranges of x and, where `has_y`, of y.
std::string describe_frame(const Frame& frame, bool has_y);

std::string draw_x_axis(const Frame& frame, const std::string& label);
std::string draw_y_axis(const Frame& frame);

}  // namespace frazil
