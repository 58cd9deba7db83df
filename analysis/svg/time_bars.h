#pragma once
// Draws where the time of devices goes: a bar for each, which is as long as its step and made of
// the parts of a TimeSplit.

#include <string>
#include <vector>

#include "analysis/time_split.h"

namespace frazil {

struct TimeBar {
  std::string device;  // stands before the bar; empty: the bar belongs to the one above
  std::string word;    // "predicted", "measured"
  TimeSplit split;
};

// Every part has a <title> with its name, time and share. Parts without time are in no legend.
std::string draw_time_bars(const std::vector<TimeBar>& bars, int width = 960);

}  // namespace frazil
