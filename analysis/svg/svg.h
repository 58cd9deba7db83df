#pragma once
// Draws pictures as SVG text: time lines (Gantt), staircases and lines over time. They are
// self-contained, without script, and readable in light and dark; every span has a <title> with
// action and times.

#include <optional>
#include <string>
#include <vector>

#include "traces/freeze_trace.h"
#include "traces/timeline.h"

namespace frazil {

// One of several time lines above each other on one time axis (predicted above measured).
struct TimelinePicture {
  std::string title;
  const Timeline* timeline = nullptr;
};
// Draws time lines. `devices`: their names; a device without one is "device 0". If a device has
// several stages, its actions name theirs ("3I0") and are fainter from stage to stage.
std::string draw_timelines(const std::vector<TimelinePicture>& pictures, int width = 960,
                           const std::vector<std::string>& devices = {});

struct Series {
  std::string name;
  std::vector<double> x;
  std::vector<double> y;
  bool steps = false;       // hold each value until the next x
  std::string remark = {};  // follows the name in the legend
  bool warns = false;       // the legend's words stand out
  // Number of another series that shows the same quantity: this series is drawn fainter, in the
  // colour of that series.
  std::optional<std::size_t> beside = {};
};
struct Chart {
  std::string title;
  std::string x_label;
  std::string y_label;
  std::vector<Series> series;
  std::vector<std::pair<double, std::string>> marks;        // vertical lines with a word
  std::vector<std::pair<double, std::string>> levels = {};  // horizontal lines with a word
  bool counts = false;                                      // y has whole numbers from 0 up
};
// Draws a chart, higher than `height` if its legend would leave the curves too little room.
std::string draw_chart(const Chart& chart, int width = 960, int height = 260);

// Draws blocks (rows) against steps (columns): frozen or active.
std::string draw_freeze_staircase(const FreezeTrace& trace, int width = 960);

}  // namespace frazil
