#pragma once
// Estimates how much memory this process takes to answer a what-if, before any is taken. The
// figures are those measured of the release build, with a margin: the estimate is never below what
// the answer takes and at most half above it (tests/findings/d7.py). Nearly all of it is lists of
// actions and their tasks.

#include "planner/what_if/what_if.h"
#include "profiles/units.h"

namespace frazil {

// What is made beside the answer; each keeps a text or a list per action or message.
struct WhatIfOutputs {
  bool timeline = false;
  bool chrome = false;
  bool messages = false;
};

// Returns the memory of one what-if. Its numbers need not be legal together.
Bytes estimate_memory(const WhatIf& what_if, const WhatIfOutputs& outputs = {});
// Returns the memory of comparing all schedules of the menu, one after another, each with up to
// `chunks` chunks on a device.
Bytes estimate_comparison(const WhatIf& question, int chunks);

}  // namespace frazil
