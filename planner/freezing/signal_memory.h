#pragma once
// The memory that a run needs, by layer, to measure the signals that its freeze policy reads. It is
// added to the profile so that plans account for it.

#include "planner/freezing/freeze_authority.h"
#include "profiles/model_profile.h"

namespace frazil {

// Returns the profile with the signals' memory added to the optimizer state of each layer. Where
// the policy reads interval_gradients, every layer that is updated keeps the sum of its gradients,
// as many bytes as its parameters have; the sum moves with the optimizer state and is dropped when
// the layer freezes. The other signals are measured between steps and hold no memory during a step.
ModelProfile with_signal_memory(ModelProfile profile, const FreezeConfig& config);

}  // namespace frazil
