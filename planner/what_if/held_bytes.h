#pragma once
// Tells how many bytes the devices of a what-if hold, given what one micro-batch keeps on a device.
// A what-if has no layers with sizes: the sizes here come from flags.

#include <optional>
#include <string>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/prediction/simulate_plan.h"
#include "profiles/units.h"

namespace frazil {

// The sizes have one value for all devices, or one per device.
struct WhatIfMemory {
  // What one micro-batch keeps on a device from F to B or W (saved activations). If a device has v
  // chunks, chunk c keeps floor((c+1) n / v) - floor(c n / v) of these n bytes.
  std::vector<Bytes> activation = {};
  // What of these one micro-batch keeps from F until R on a device that recomputes: the input of
  // its stage. Empty: not known, so all of `activation`, an upper bound.
  std::vector<Bytes> input = {};
  // What a device holds throughout (parameters, gradients, optimizer state), once per direction.
  std::vector<Bytes> state = {Bytes{}};
  std::optional<Bytes> limit = std::nullopt;  // of each device
};

// Returns the most that each device holds: its state, and what all micro-batches in flight keep. On
// a stage that recomputes that is its input from F on and all its activations from R on. Throws
// InputError{"command line", 0} for a list of a wrong length, for bytes past 2^62, and for an input
// above the activations of which it is one.
// Requires: `plan` is that of a what-if, and `step` its simulation.
std::vector<Bytes> find_peak_bytes(const WhatIfMemory& memory, const Plan& plan,
                                   const SimulatedStep& step, int devices);

// Returns words to put behind a sentence if stages of the schedule recompute and the sizes do not
// say what they keep until then; else "".
std::string tell_full_count(const WhatIfMemory& memory, ScheduleKind schedule);

// Returns a sentence if a device holds more than the limit, which names the fullest one.
std::optional<std::string> find_excess(const WhatIfMemory& memory, const std::vector<Bytes>& peaks);

}  // namespace frazil
