#pragma once
// Compares a measurement with a baseline and says what moved: the host, a layer, a link, or the
// step beside all of these. Everything here is a pure function of its numbers.
//
// The host's ratio is the lower median of the layers' ratios today / baseline, which half of them
// or more reach: what slows all layers alike is the host's, and what slows fewer than half of them
// is their own. A layer or link
// is slower if its own ratio (that over the host's) and its ratio are both above 1 by more than its
// bar, so that what merely gained less than the rest is not. The bar is the larger of a floor and
// twice the noise (that of the less steady of both days), and times have to differ by more than
// kGuardResolution. Faster is the same by the inverse ratio.
// The step by itself counts where nothing else moved.
// What the good day has and today lacks cannot be told to have stayed, and is listed by itself.

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

// Returns the things of `values` that some part lacks, each once.
std::vector<GuardedValue> find_missing_anywhere(
    const std::vector<GuardedValue>& values, const std::vector<std::vector<GuardedValue>>& parts);

// True if something is slower, so that it has to be confirmed.
bool needs_confirmation(const std::vector<Movement>& movements);

// What is guarded, and so how it is confirmed: a plan by measuring it again, traces by their
// halves.
enum class Guarded { kPlan, kTrace };

// Something slower that is no alarm, and the clause that says why.
struct OpenMovement {
  Movement movement;
  std::string reason;
};

struct GuardConclusion {
  std::vector<Movement> alarms;           // of the whole: slower there and in each part; with FAIL
  std::vector<OpenMovement> unconfirmed;  // slower in the whole, and no alarm
  // INCONCLUSIVE if a measurement compares nothing, a thing has fewer blocks than
  // kFewestBaselineBlocks, something was slower and there is no part to confirm it, or anywhere the
  // host or the step is_too_unsteady(); else FAIL if there is an alarm; else INCONCLUSIVE if
  // something is missing today; else PASS.
  Verdict verdict = Verdict::kInconclusive;
  std::string reason;  // of INCONCLUSIVE, in a clause; else ""
};

// True if the thing's own noise, and no bar that somebody chose, lets it pass almost anything.
bool is_too_unsteady(const Movement& movement);

// `whole` is what the answer shows. `parts` confirm it: of a plan the second measurement, if there
// was one; of traces the two halves. `missing` is what the baseline has and some part lacks.
GuardConclusion conclude_guard(const std::vector<Movement>& whole,
                               const std::vector<std::vector<Movement>>& parts, Guarded guarded,
                               const std::vector<GuardedValue>& missing = {});

// Says in a clause why a good day could not be told from a later one that equals it, by the same
// rules; "" if it could. `parts` are the halves of traces, and none of a plan.
std::string refuse_good_day(const std::vector<GuardedValue>& day,
                            const std::vector<std::vector<GuardedValue>>& parts, Guarded guarded);

}  // namespace frazil
