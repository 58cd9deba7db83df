#pragma once
// What it takes to measure the signals a policy reads: memory that a run needs beside its own, by
// layer, so that plans are made for what is really held.

#include "planner/freezing/freeze_authority.h"
#include "profiles/model_profile.h"

namespace frazil {

// Where interval_gradients are read, every layer that is updated keeps the sum of its gradients
// besides its optimizer state, moves with it and gives it up when it freezes: so many bytes as its
// parameters have. The other signals are measured between steps and hold nothing during one.
ModelProfile with_signal_memory(ModelProfile profile, const FreezeConfig& config);

}  // namespace frazil
