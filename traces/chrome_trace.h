#pragma once
// Writes time lines as Chrome trace JSON, which Perfetto and chrome://tracing open. A span is a
// complete event "X" in exact microseconds with three decimals. Process i + 1 is time line i;
// thread 8 x device + lane is one lane of one device. The event's name is the action's text, its
// category the action's kind; its arguments are step, device and, for actions that have one,
// micro_batch (with last_micro_batch if there are several). "otherData" holds "format", "version"
// and the number of devices of each time line, so that a reader can give back what was written, and
// "clock_uncertainty_ns" of a time line that several processes have measured.

#include <optional>
#include <string>
#include <vector>

#include "traces/timeline.h"

namespace frazil {

// The number of lanes, rounded up so that thread numbers stay readable.
inline constexpr int kChromeThreadsPerDevice = 8;

struct NamedTimeline {
  std::string name;  // "predicted", "measured"
  const Timeline* timeline = nullptr;
  std::optional<Duration> clock_uncertainty = std::nullopt;
};

// Returns the JSON text; equal time lines give equal bytes. Throws InputError for a name that is
// not UTF-8.
std::string to_chrome_json(const std::vector<NamedTimeline>& timelines);

}  // namespace frazil
