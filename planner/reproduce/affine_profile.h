#pragma once
// Fits layer times to a straight line over the micro-batch size: t(n) = fixed + n x per_sample. The
// fixed part is what every call costs whatever its size: kernel launches, and the latency of
// collectives inside the layer. It is the intercept, found from the profile alone, so a disturbed
// row (a small size, where the host's launches dominate the measured time) weighs no more than any
// other row.

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

// Fits (micro-batch size, time) rows by least squares of the relative residuals (t(n) - time) /
// time, that is with weights 1 / time^2. A time of less than 1 ns counts as 1 ns. A single row
// gives a line without a fixed part. Requires: a row; sizes that differ.
AffineTime fit_affine(const std::vector<std::pair<int, Duration>>& rows);

// Factors on the two fitted parts; 1: as profiled.
struct AffineScale {
  double fixed = 1;
  double per_sample = 1;
};

// Returns the profile with forward and whole backward of each layer replaced by their scaled lines,
// at the same sizes, to the nearest ns and never below 0. A frozen forward takes as long as a
// forward. The backward is split by the rule of profiles/split_backward.h. Everything else stays.
ModelProfile make_affine_profile(const ModelProfile& profile, const AffineScale& scale = {});

}  // namespace frazil
