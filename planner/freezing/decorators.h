#pragma once
// What may stand between a policy's wish and the mask in force. Each is a function of its
// configuration, its state, the mask that is wanted and the mask that is held (in force until now);
// it answers with the mask to go on with, and why where that is another. Any of them may be set;
// they are applied in the order of Decorators:
//   hysteresis -> prefix -> validation guard -> minimum interval -> amortisation
// Hysteresis looks at single blocks and so stands before the prefix is taken; the guard's thaw is
// no wish of the policy's and passes by both; the last two only choose between the wanted mask and
// the held one, so that what those before them promise of a mask is kept.

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

Length in_steps(Length length, Step steps_per_epoch);

// A block changes when every decision for that long has wanted it as it is wanted now.
struct Hysteresis {
  Length length;
  friend bool operator==(const Hysteresis&, const Hysteresis&) = default;
};
struct HysteresisState {
  FreezeMask wanted = {};        // by the last decision; of no blocks before one
  std::vector<Step> since = {};  // by block, the first decision of the row that wanted it so
  friend bool operator==(const HysteresisState&, const HysteresisState&) = default;
};

// Only the blocks before the first active one are frozen: the longest frozen prefix in the mask.
struct PrefixProjection {
  friend bool operator==(const PrefixProjection&, const PrefixProjection&) = default;
};

// Thaws every block when a validation metric leaves its moving average on the bad side by more than
// sigmas x (moving standard deviation) + tolerance, or is not finite, while a block is frozen, and
// keeps all active for the next `hold_evaluations` evaluations. mean m and variance v of a reading
// x:
//   d = x - m;  m += smoothing d;  v = (1 - smoothing) (v + smoothing d^2);  first: m = x, v = 0
// A reading that thaws is left out of both. With `waits` no block freezes but after a reading that
// is not better than the mean before it by more than tolerance: while the metric rises, a fall is
// no sign that freezing harms, for it may rise more slowly instead.
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
  double variance = 0;
  int hold = 0;          // evaluations that all blocks stay active for
  bool improves = true;  // by the last reading that was no fall; so it begins
  std::int64_t thaws = 0;
  friend bool operator==(const ValidationGuardState&, const ValidationGuardState&) = default;
};

// Two changes of the mask are at least that far apart, thaws too.
struct MinimumInterval {
  Length length;
  friend bool operator==(const MinimumInterval&, const MinimumInterval&) = default;
};

// What a change of mask would bring and cost, as the planner predicts it.
struct PredictedTransition {
  Duration saved_per_step{0};  // negative where steps get longer
  Duration cost{0};            // of asking, moving and starting, and of filling a cache
};
using PredictTransition =
    std::function<PredictedTransition(const FreezeMask& from, const FreezeMask& to, Step step)>;

// A mask that freezes more is taken on only if
//   saved_per_step x steps to come >= margin_percent / 100 x cost  and  saved_per_step > 0
// with the steps to the end of the run, or `within` where that is less. A mask that thaws a block
// is never asked about: it is wanted for what is learnt, which no time can weigh.
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

// `reason`: one sentence, empty where the wanted mask goes through.
struct Ruling {
  FreezeMask mask;
  std::string reason;
};

struct Wish {
  const FreezeMask& wanted;
  const FreezeMask& held;
  Step step = 0;
};

// Require: lengths in steps.
Ruling rule(const Hysteresis& hysteresis, HysteresisState& state, const Wish& wish);
Ruling rule(const PrefixProjection&, const Wish& wish);
Ruling rule(const ValidationGuard& guard, ValidationGuardState& state,
            const std::optional<Validation>& validation, const Wish& wish);
Ruling rule(const MinimumInterval& interval, std::optional<Step> changed, const Wish& wish);
Ruling rule(const AmortisationGate& gate, const PredictTransition& predict, Step steps,
            const Wish& wish);

FreezeMask project_prefix(const FreezeMask& mask);

}  // namespace frazil
