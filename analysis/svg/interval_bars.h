#pragma once
// Draws measured values as bars with intervals: one row each, with a dot for every sample behind
// the value and, where there is one, a hollow diamond for what was predicted.

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace frazil {

struct IntervalBar {
  std::string label;
  double value = 0;
  std::optional<std::pair<double, double>> interval = std::nullopt;  // low, high
  std::vector<double> samples = {};
  std::optional<double> predicted = std::nullopt;
};

struct IntervalChart {
  std::string title;
  std::string x_label;
  double base = 0;  // where bars begin
  std::vector<IntervalBar> bars;
  std::vector<std::pair<double, std::string>> levels = {};  // vertical lines with a word
};

// The axis has room for values, samples and predictions; an interval that is far wider ends at the
// edge, and the row's <title> has its numbers. A chart without bars says "no data".
std::string draw_interval_bars(const IntervalChart& chart, int width = 960);

}  // namespace frazil
