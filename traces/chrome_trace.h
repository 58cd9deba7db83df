#pragma once
// Time lines as Chrome trace JSON, which Perfetto and chrome://tracing open: complete events "X",
// exact microseconds with three decimals. Process i + 1 is time line i, thread 8 x device + lane is
// one lane of one device; a name is the action's text, a category its kind; the arguments are
// step, device and, of actions that have them, micro_batch (and last_micro_batch of several).
// "otherData" holds "format", "version" and the number of devices of each time line, so that
// read_chrome_trace.h gives back what was written.

#include <string>
#include <vector>

#include "traces/timeline.h"

namespace frazil {

inline constexpr int kChromeThreadsPerDevice =
    8;  // lanes, rounded up so that numbers stay readable

struct NamedTimeline {
  std::string name;  // "predicted", "measured"
  const Timeline* timeline = nullptr;
};

// Equal time lines give equal bytes. Throws InputError for a name that is not UTF-8.
std::string to_chrome_json(const std::vector<NamedTimeline>& timelines);

}  // namespace frazil
