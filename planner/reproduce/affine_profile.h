#pragma once
// Layer times as a straight line over the micro-batch size: t(n) = fixed + n x per_sample. The
// fixed part is what every call costs whatever its size: launches of kernels, the latency of
// collectives inside the layer. It is found from the profile alone, as the intercept, so that a row
// that was disturbed (small sizes, where the host's launches are what is timed) weighs no more than
// any other.

#include <utility>
#include <vector>

#include "profiles/model_profile.h"
#include "profiles/units.h"

namespace frazil {

struct AffineTime {
  double fixed = 0;       // ns
  double per_sample = 0;  // ns
  friend bool operator==(const AffineTime&, const AffineTime&) = default;
};

// Least squares of the relative residuals (t(n) - time) / time: weights 1 / time^2. A time of less
// than 1 ns counts as 1 ns. Of one row: no fixed part. Requires: a row; sizes that differ.
AffineTime fit_affine(const std::vector<std::pair<int, Duration>>& rows);

// How much of the fitted parts a run shows. 1: as profiled.
struct AffineScale {
  double fixed = 1;
  double per_sample = 1;
};

// The profile with forward and whole backward of each layer replaced by their lines, at the same
// sizes, to the nearest ns, never below zero; the backward is split by the rule of
// profiles/model_profile.h. Everything else stays.
ModelProfile make_affine_profile(const ModelProfile& profile, const AffineScale& scale = {});

}  // namespace frazil
