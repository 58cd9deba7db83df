#pragma once
// Reads back exactly what chrome_trace.h wrote: time lines, names, idle devices, the order of
// spans. Other Chrome traces are refused.

#include <string>
#include <string_view>
#include <vector>

#include "traces/timeline.h"

namespace frazil {

struct OwnedTimeline {
  std::string name;  // "predicted", "measured"
  Timeline timeline;

  friend bool operator==(const OwnedTimeline&, const OwnedTimeline&) = default;
};

// Throws InputError with the line: another format, an event of an unknown process or thread, an
// action outside the grammar, a time of more than three decimals, ...
std::vector<OwnedTimeline> parse_chrome_trace(std::string_view text, const std::string& file);

}  // namespace frazil
