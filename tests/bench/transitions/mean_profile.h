#pragma once
// A machine's speed drifts: what was measured before and after something is closer to what held
// meanwhile than either alone.

#include "profiles/model_profile.h"

namespace frazil {

// The same model measured twice: each time is the mean of both, rounded down to whole ns; all else
// is the first's. Requires the same layers and micro-batch sizes.
ModelProfile mean_times(const ModelProfile& first, const ModelProfile& second);

}  // namespace frazil
