#pragma once
// Pictures as SVG text: time lines (Gantt), staircases and lines over time. Self-contained, no
// script, readable in light and dark; every span has a <title> with action and times.

#include <optional>
#include <string>
#include <vector>

#include "traces/freeze_trace.h"
#include "traces/timeline.h"

namespace frazil {

// Two time lines above each other on one time axis (predicted above measured).
struct TimelinePicture {
  std::string title;
  const Timeline* timeline = nullptr;
};
// `devices`: their names; where there is none, "device 0". Where a device has several stages, its
// actions name theirs ("3I0") and are fainter from stage to stage.
std::string draw_timelines(const std::vector<TimelinePicture>& pictures, int width = 960,
                           const std::vector<std::string>& devices = {});

struct Series {
  std::string name;
  std::vector<double> x;
  std::vector<double> y;
  bool steps = false;       // hold each value until the next x
  std::string remark = {};  // behind the name in the legend
  bool warns = false;       // the legend's words stand out
  // Fainter, in the colour of the series of that number: another curve of the same thing.
  std::optional<std::size_t> beside = {};
};
struct Chart {
  std::string title;
  std::string x_label;
  std::string y_label;
  std::vector<Series> series;
  std::vector<std::pair<double, std::string>> marks;        // vertical lines with a word
  std::vector<std::pair<double, std::string>> levels = {};  // horizontal ones, likewise
  bool counts = false;                                      // whole numbers from 0 up
};
// Higher than `height` where its legend would leave the curves too little.
std::string draw_chart(const Chart& chart, int width = 960, int height = 260);

// Blocks (rows) against steps (columns): frozen or active.
std::string draw_freeze_staircase(const FreezeTrace& trace, int width = 960);

}  // namespace frazil
