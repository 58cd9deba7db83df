#pragma once
// The runtime of torch.distributed.pipelining performs an I (dgrad) of every stage that its
// schedule lists one for. In a stage whose inputs need no gradient that I computes nothing, but it
// waits for the gradient of the stage's outputs, and what follows on the device waits with it.
// Plans say so in their provenance; in all other plans such an I is left out, as it is by Frazil's
// own executor.

#include "planner/plan/plan.h"

namespace frazil {

inline constexpr const char* kGradientWaitsKey = "gradient_waits";

inline bool has_gradient_waits(const Plan& plan) {
  return plan.provenance.contains(kGradientWaitsKey);
}

inline void clear_gradient_waits(Plan& plan) { plan.provenance.erase(kGradientWaitsKey); }

inline void set_gradient_waits(Plan& plan) {
  plan.provenance[kGradientWaitsKey] = "an I without work waits for its gradient, as in PyTorch";
}

}  // namespace frazil
