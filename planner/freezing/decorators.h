#pragma once
// Decorators stand between the mask that a freeze policy wants and the mask in force. Each is a
// function of its configuration, its state, the wanted mask and the held mask (in force up to this
// step). It returns the mask to go on with, and a reason where that is not the wanted one. Any
// decorators may be set; they are applied in the order of struct Decorators:
//   hysteresis -> prefix -> validation guard -> minimum interval -> amortisation
// Hysteresis judges single blocks and so comes before the prefix is taken. The guard comes after
// both because its thaw is no wish of the policy's. The last two only choose between the wanted and
// the held mask, so a mask stays a prefix; but the minimum interval may hold back the guard's thaw.
// The first decision of a run asks the prefix and the guard alone.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "planner/freezing/freeze_policy.h"
#include "planner/freezing/signals.h"
#include "traces/freeze_mask.h"

namespace frazil {

// A number of steps or epochs.
struct Length {
  Step count = 1;
  PaceUnit unit = PaceUnit::kSteps;
  friend bool operator==(const Length&, const Length&) = default;
};

// Requires: a count of at most 1e9 epochs, 1 <= steps_per_epoch <= 2^32.
Length in_steps(Length length, Step steps_per_epoch);

// A wish of the policy freezes or thaws a block only after every decision over this length has
// wanted it so. The guard's thaws do not wait.
struct Hysteresis {
  Length length;
  friend bool operator==(const Hysteresis&, const Hysteresis&) = default;
};
struct HysteresisState {
  FreezeMask wanted = {};        // by the last call of rule(); no blocks before the first call
  std::vector<Step> since = {};  // by block: the step since which it is wanted as in `wanted`
  friend bool operator==(const HysteresisState&, const HysteresisState&) = default;
};

// Freezes only the blocks before the first active one: the longest frozen prefix of the mask.
struct PrefixProjection {
  friend bool operator==(const PrefixProjection&, const PrefixProjection&) = default;
};

// Asks to thaw every block when a validation metric is worse than it was by more than
// sigmas x noise + tolerance, or is not finite, while a block is frozen. It was the better of its
// moving mean, which a steady fall does not drag along at once, and of the reading before, which a
// rise does not leave behind. The guard asks so until the evaluation number `hold_evaluations`
// after that one has been read. The noise of an accuracy is the standard error of the difference
// between two shares p and q of n samples, the validation part, taken to be independent (they are
// the same samples, so that it is less),
//   sqrt(p (1 - p) / n + q (1 - q) / n)   each share as (k + 1) / (n + 2) of k right answers
// (Laplace's rule: a share of 1 is not certain). That of a loss, whose spread over samples is not
// measured, is its moving deviation: it counts the trend, so that a loss which has fallen steeply
// has to rise as steeply. The mean m and the variance v take in a reading x as
//   d = x - m;  m += smoothing d;  v = (1 - smoothing) (v + smoothing d^2);  first: m = x, v = 0
// A reading that thaws blocks enters neither. With `waits`, blocks freeze only after a reading that
// does not beat the mean before it by more than `tolerance`: while the metric still improves,
// freezing may slow the improvement without a fall that the guard could see.
struct ValidationGuard {
  enum class Metric { kAccuracy, kLoss };
  Metric metric = Metric::kAccuracy;
  double sigmas = 3;
  double tolerance = 0.005;  // in the metric's own unit
  double smoothing = 0.2;    // (0, 1]
  int hold_evaluations = 2;  // >= 1
  bool waits = false;
  friend bool operator==(const ValidationGuard&, const ValidationGuard&) = default;
};
struct ValidationGuardState {
  std::optional<Step> read;  // step of the last evaluation that was read
  std::optional<double> mean;
  std::optional<double> last;  // the reading before, as far as it thawed nothing
  double variance = 0;
  int hold = 0;  // evaluations for which all blocks stay active
  // Whether the last finite reading that thawed nothing beat the mean by more than `tolerance`. The
  // first reading counts as one that did.
  bool improves = true;
  std::int64_t thaws = 0;
  friend bool operator==(const ValidationGuardState&, const ValidationGuardState&) = default;
};

// Two changes of the mask, thaws included, are at least this far apart.
struct MinimumInterval {
  Length length;
  friend bool operator==(const MinimumInterval&, const MinimumInterval&) = default;
};

// The predicted saving and cost of the transition to the best plan of another mask.
struct PredictedTransition {
  Duration saved_per_step{0};  // negative where steps get longer
  Duration cost{0};  // time to search, to move state, to start the plan and to fill a cache; >= 0
};
using PredictTransition =
    std::function<PredictedTransition(const FreezeMask& from, const FreezeMask& to, Step step)>;

// Accepts a mask that freezes more only if
//   saved_per_step x steps to come >= margin_percent / 100 x cost  and  saved_per_step > 0
// The steps to come reach to the end of the run, or are `within` where that is fewer. A mask that
// thaws a block passes unasked: it is wanted for the accuracy, which no saved time outweighs.
struct AmortisationGate {
  int margin_percent = 100;
  std::optional<Length> within = std::nullopt;
  friend bool operator==(const AmortisationGate&, const AmortisationGate&) = default;
};

struct Decorators {
  std::optional<Hysteresis> hysteresis = std::nullopt;
  std::optional<PrefixProjection> prefix = std::nullopt;
  std::optional<ValidationGuard> guard = std::nullopt;
  std::optional<MinimumInterval> minimum_interval = std::nullopt;
  std::optional<AmortisationGate> amortisation = std::nullopt;
  friend bool operator==(const Decorators&, const Decorators&) = default;
};

struct Ruling {
  FreezeMask mask;
  std::string reason;  // one sentence; empty if the decorator had nothing to change
};

struct Wish {
  const FreezeMask& wanted;
  const FreezeMask& held;
  Step step = 0;
};

// Each of these applies one decorator to a wish. `changed`: the step of the last change of the
// mask, which the first decision is not; without one every mask passes. `steps`: of the whole run.
// Requires: lengths in steps (in_steps), a `predict` that can be called.
Ruling rule(const Hysteresis& hysteresis, HysteresisState& state, const Wish& wish);
Ruling rule(const PrefixProjection&, const Wish& wish);
Ruling rule(const ValidationGuard& guard, ValidationGuardState& state,
            const std::optional<Validation>& validation, const Wish& wish);
Ruling rule(const MinimumInterval& interval, std::optional<Step> changed, const Wish& wish);
Ruling rule(const AmortisationGate& gate, const PredictTransition& predict, Step steps,
            const Wish& wish);

// Returns the mask whose frozen blocks are the longest frozen prefix of `mask`.
FreezeMask project_prefix(const FreezeMask& mask);

}  // namespace frazil
