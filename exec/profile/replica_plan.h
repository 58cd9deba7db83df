#pragma once
// The plans in whose steps the profiler measures.

#include "planner/plan/plan.h"
#include "profiles/model_profile.h"

namespace frazil {

// Two micro-batches per device are enough to see one follow the other.
inline constexpr int kProfiledMicroBatches = 2;

// Returns a plan with the whole model on every device, each with its own micro-batches, so that
// all devices compute at once and add their gradients at the end. Nothing is frozen.
Plan make_replica_plan(const ModelProfile& structure, int devices, int micro_batch_size);

// Returns a plan of as many micro-batches, with one half of the layers on device 0 and the other
// half on device 1. Requires: two layers.
Plan make_halves_plan(const ModelProfile& structure, int micro_batch_size);

}  // namespace frazil
