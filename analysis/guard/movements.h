#pragma once
// Compares a measurement with a baseline and says what moved: the host, a layer, a link, or the
// step beside all of these. Everything here is a pure function of its numbers.
//
// The host's ratio is the lower median of the layers' ratios today / baseline: what slows all
// layers alike is the host's, and what slows fewer than half of them is their own. A layer or link
// is slower if its own ratio (that over the host's) and its ratio are both above 1 by more than its
// bar, so that what merely gained less than the rest is not. The bar is the larger of a floor and
// twice the noise (that of the less steady of both days), and times have to differ by more than
// kGuardResolution. Faster is the same by the inverse ratio.
// The step by itself counts where nothing else moved.
// What the good day has and today lacks cannot be told to have stayed, and is listed by itself.

#include <optional>
#include <string>
#include <vector>

#include "analysis/guard/baseline.h"
#include "analysis/ratio_interval.h"

namespace frazil {

inline constexpr double kGuardFloor = 0.03;
// Times that differ by no more ns than this are told apart by no clock and no wake-up of a thread.
inline constexpr double kGuardResolution = 1000;

enum class Direction { kNone, kSlower, kFaster };

// One thing, today beside the good day.
struct Movement {
  GuardedKind kind = GuardedKind::kLayer;
  std::string name;
  double baseline = 0;  // median; 0 for the host, as in `today`
  double today = 0;
  double ratio = 1;      // today / baseline
  double own_ratio = 1;  // of a layer or link: ratio over the host's; else the ratio
  double bar = 0;        // ratio - 1 beyond which it has moved
  double noise = 0;      // of the less steady day; of the host that of its layers
  int blocks = 0;        // of the day that has fewer; 0 for the host
  Direction moved = Direction::kNone;
};

// Compares thing by thing. The host comes first, if there are layers, then what both days have, in
// the order of the baseline. The bar is at least `floor`.
std::vector<Movement> find_movements(const std::vector<GuardedValue>& baseline,
                                     const std::vector<GuardedValue>& today,
                                     double floor = kGuardFloor);

// Returns the things of `values` that `others` lacks, in the order of `values`.
std::vector<GuardedValue> find_missing(const std::vector<GuardedValue>& values,
                                       const std::vector<GuardedValue>& others);

// True if something is slower, so that a second block has to confirm it.
bool needs_confirmation(const std::vector<Movement>& movements);

struct GuardConclusion {
  std::vector<Movement> alarms;       // as first seen: slower both times
  std::vector<Movement> unconfirmed;  // slower the first time alone
  // INCONCLUSIVE if a block compares nothing, a thing of a block has less than `fewest_blocks`, or
  // something was slower and there is no second block; else FAIL if there is an alarm; else
  // INCONCLUSIVE if something is missing today, or if in either block twice the noise of the host
  // or of the step is above kLargestBar and all that widens its bar; else PASS.
  Verdict verdict = Verdict::kInconclusive;
  std::string reason;  // of INCONCLUSIVE, in a clause; else ""
};

// `missing` is what the baseline has and some block lacks.
GuardConclusion conclude_guard(const std::vector<Movement>& first,
                               const std::optional<std::vector<Movement>>& second,
                               int fewest_blocks, const std::vector<GuardedValue>& missing = {});

}  // namespace frazil
