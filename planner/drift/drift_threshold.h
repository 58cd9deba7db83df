#pragma once
// How far from its baseline a cost must lie to be outside of its noise, so that runs without drift
// are seldom told one (drift_detector.h has the rule that this is a part of).
//
// Half of the chance of a false alarm goes to windows that are outside by chance, the other half to
// baselines that are quieter than their machine. That is so of windows that are independent and
// normal.
//
// On a virtual machine they are not: what other guests do comes in bursts that look like a drift
// of 30 % for up to 11 steps. A score of 8 windows of 2 steps outlasts one burst; two in a row it
// may not, unless the last 64 windows have had bursts. It takes 16 or 17 steps, and 20 where a
// window is lost and the drift begins with one. A score of 6 windows of 3 takes 18 to 20 and may
// lose none within 20; in recorded noise it told fewer drifts in time, and more that were none
// (docs/formats.md has the figures).

#include "profiles/units.h"

namespace frazil {

// The least score, in windows, that tells a drift.
inline constexpr int kLeastDriftScore = 8;

struct DriftRule {
  int window_steps = 2;
  // The share of runs without drift in which a drift may be told, if windows are independent.
  double false_alarms = 0.001;
  Step run_steps = 1;  // the length of the run
  friend bool operator==(const DriftRule&, const DriftRule&) = default;
};

// Returns the t of |y - m| > t x s x sqrt(1 + pi/2n) for a baseline of so many windows, n, beside
// which so many quantities are watched. Requires: 2 windows or more, a quantity.
double find_drift_threshold(const DriftRule& rule, int quantities, int windows);

}  // namespace frazil
