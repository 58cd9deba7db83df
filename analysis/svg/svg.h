#pragma once
// Draws pictures as SVG text: time lines (Gantt), staircases and lines over time. They are
// self-contained, without script, and readable in light and dark. In time lines every span has a
// <title> with action, device, lane and times. On a page, analysis/html/page.js zooms into what
// stands in the group `plot`. Widths and heights are in pixels.

#include <optional>
#include <string>
#include <vector>

#include "traces/freeze_trace.h"
#include "traces/timeline.h"

namespace frazil {

// One of several time lines above each other on one time axis (predicted above measured).
struct TimelinePicture {
  std::string title;
  const Timeline* timeline = nullptr;  // required; without spans the picture says so
};
// Draws time lines on an axis in ms; each begins at its own first span. `devices`: their names; a
// device without one is "device 0". If some device has several stages, the actions of all devices
// name theirs where there is room ("3I0"), and those of a device's second to fourth stage are
// fainter from stage to stage.
std::string draw_timelines(const std::vector<TimelinePicture>& pictures, int width = 960,
                           const std::vector<std::string>& devices = {});

// One curve. A value that is not finite breaks the line. Requires: as many y as x.
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
  // y is drawn by its logarithm, if all values lie above zero.
  bool is_log = false;
};
// Draws a chart, higher than `height` if its legend and the words of its marks would leave the
// curves too little room. Marks outside the range of x, and their words that find no room, are left
// out; the word of a level that finds no room beside its line stands in the legend.
// A chart without values says "no data".
std::string draw_chart(const Chart& chart, int width = 960, int height = 260);

// Draws blocks (rows, block 0 at the bottom) against steps (columns): frozen or active. All blocks
// are active before the first mask.
std::string draw_freeze_staircase(const FreezeTrace& trace, int width = 960);

}  // namespace frazil
