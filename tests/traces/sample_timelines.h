#pragma once
// Makes time lines drawn by hand and at random.

#include <cstdint>
#include <string>
#include <utility>

#include "tests/traces/random_action.h"
#include "traces/timeline.h"

namespace frazil {

// Makes a span of an action of `step` on the compute lane (or another), with times in ns.
inline Span make_span(int device, const std::string& action, std::int64_t start, std::int64_t end,
                      Lane lane = Lane::kCompute, Step step = 0) {
  Span span{.device = DeviceId{device},
            .lane = lane,
            .action = parse_action(action),
            .start = TimePoint{Duration{start}},
            .end = TimePoint{Duration{end}}};
  set_step(span.action, step);
  return span;
}

// Makes 1F1B on 3 devices with 4 micro-batches, F one unit, B two, no time on links: 18 units.
inline Timeline make_1f1b_3x4(std::int64_t unit) {
  struct Cell {
    int device;
    const char* action;
    std::int64_t start;
    std::int64_t length;
  };
  Timeline timeline{.devices = 3, .spans = {}};
  for (const Cell& cell : {
           Cell{0, "0F0", 0, 1}, {0, "0F1", 1, 1},  {0, "0F2", 2, 1},  {0, "0B0", 7, 2},
           Cell{0, "0F3", 9, 1}, {0, "0B1", 10, 2}, {0, "0B2", 13, 2}, {0, "0B3", 16, 2},
           Cell{1, "1F0", 1, 1}, {1, "1F1", 2, 1},  {1, "1B0", 5, 2},  {1, "1F2", 7, 1},
           Cell{1, "1B1", 8, 2}, {1, "1F3", 10, 1}, {1, "1B2", 11, 2}, {1, "1B3", 14, 2},
           Cell{2, "2F0", 2, 1}, {2, "2B0", 3, 2},  {2, "2F1", 5, 1},  {2, "2B1", 6, 2},
           Cell{2, "2F2", 8, 1}, {2, "2B2", 9, 2},  {2, "2F3", 11, 1}, {2, "2B3", 12, 2},
       }) {
    timeline.spans.push_back(
        make_span(cell.device, cell.action, cell.start * unit, (cell.start + cell.length) * unit));
  }
  return timeline;
}

// Draws spans of any kind and lane, unsorted; on each lane of a device they follow one another.
inline Timeline make_random_timeline(RandomActions& random) {
  Timeline timeline{.devices = static_cast<int>(random.integer(1, 4)), .spans = {}};
  for (int device = 0; device < timeline.devices; ++device) {
    for (int lane = 0; lane < 5; ++lane) {
      std::int64_t time = random.integer(-20, 20);
      for (std::int64_t spans = random.integer(0, 6); spans > 0; --spans) {
        const std::int64_t start = time + random.integer(0, 3);
        const std::int64_t end = start + random.integer(0, 9);
        timeline.spans.push_back(make_span(device, to_text(random.action()), start, end,
                                           static_cast<Lane>(lane), random.integer(0, 3)));
        time = end;
      }
    }
  }
  for (std::size_t i = timeline.spans.size(); i > 1; --i) {
    const auto other = static_cast<std::size_t>(random.integer(0, static_cast<int>(i) - 1));
    std::swap(timeline.spans[i - 1], timeline.spans[other]);
  }
  return timeline;
}

}  // namespace frazil
