#pragma once
// Time lines as Chrome trace JSON, which Perfetto and chrome://tracing open: complete events "X",
// exact microseconds with three decimals. Process i + 1 is time line i, thread 8 x device + lane is
// one lane of one device; a name is the action's text, a category its kind; the arguments are
// step, device and, of actions that have them, micro_batch (and last_micro_batch of several).

#include <string>
#include <vector>

#include "traces/timeline.h"

namespace frazil {

struct NamedTimeline {
  std::string name;  // "predicted", "measured"
  const Timeline* timeline = nullptr;
};

// Write-only; equal time lines give equal bytes. Throws InputError for a name that is not UTF-8.
std::string to_chrome_json(const std::vector<NamedTimeline>& timelines);

}  // namespace frazil
