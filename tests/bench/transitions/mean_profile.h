#pragma once
// Averages two profiles. A machine's speed drifts: the mean of measurements before and after
// something is closer to its speed meanwhile than either measurement.

#include "profiles/model_profile.h"

namespace frazil {

// Returns the mean of two profiles of one model: each time is the mean of both, rounded down to
// whole ns; all else is the first's. Requires the same layers and micro-batch sizes.
ModelProfile mean_times(const ModelProfile& first, const ModelProfile& second);

}  // namespace frazil
