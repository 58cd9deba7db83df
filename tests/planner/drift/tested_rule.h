#pragma once
// The rule that tests of the drift detector ask for: windows of two steps, one false alarm in a
// thousand runs of 2000 steps.

#include "planner/drift/drift_detector.h"

namespace frazil {

inline constexpr DriftRule kRule{.window_steps = 2, .false_alarms = 0.001, .run_steps = 2'000};

}  // namespace frazil
