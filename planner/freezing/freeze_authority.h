#pragma once
// The one who decides what is frozen: a policy and the decorators around it. One authority in a run
// decides, at any step; everyone else is told. Equal configuration, shape of the run and row of
// signals give equal decisions; the state is a plain value, and an authority that is given it goes
// on as the one that had it.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "planner/freezing/decorators.h"
#include "planner/freezing/freeze_policy.h"
#include "planner/freezing/measured_freeze.h"
#include "planner/freezing/signals.h"

namespace frazil {

struct FreezeConfig {
  FreezePolicy policy;
  Decorators decorators;
  friend bool operator==(const FreezeConfig&, const FreezeConfig&) = default;
};

struct FreezeState {
  std::optional<Step> step;     // of the last decision; none: nothing is decided yet
  FreezeMask mask;              // in force since; without a meaning before the first
  std::optional<Step> changed;  // step of the last change, the first decision not counted
  PolicyState policy;
  HysteresisState hysteresis;
  ValidationGuardState guard;
  friend bool operator==(const FreezeState&, const FreezeState&) = default;
};

// Whether the devices have room for a run under this mask, by whatever plan.
using FindRoom = std::function<bool(const FreezeMask& mask)>;

// Who declines a mask that there is no room for, as Decision::by names it.
inline constexpr const char* kNoRoom = "memory";

struct Decision {
  FreezeMask mask;       // holds from this step on
  bool changed = false;  // against the decision before; the first counts as a change
  std::string by;        // "pt-paper", "minimum_interval": who had the last word, as in the file
  std::string reason;    // one sentence
  friend bool operator==(const Decision&, const Decision&) = default;
};

// Whatever a run under this configuration may be asked for, in the order of Signal.
std::vector<Signal> needed_signals(const FreezeConfig& config);
// The configuration asks for predictions of switches.
bool needs_prediction(const FreezeConfig& config);

FreezeState initial_state(const FreezeConfig& config);

class FreezeAuthority {
 public:
  // Requires: `predict` where the configuration needs it; a state of this configuration.
  // A change for which there is no room is declined, and asked for again as long as it is wanted.
  FreezeAuthority(const FreezeConfig& config, const RunShape& run, PredictTransition predict = {},
                  FindRoom has_room = {});
  FreezeAuthority(const FreezeConfig& config, const RunShape& run, FreezeState state,
                  PredictTransition predict = {}, FindRoom has_room = {});

  // Requires: steps never decrease. Asked a second time for a step it repeats itself. The first
  // decision has nothing to change: only the prefix and the guard are heard.
  Decision decide(const FreezeSignals& signals);

  // The mask that is in force after the held one, as far as can be told before: what a policy that
  // reads the step alone wants next, where that is within so many steps, and of one that reads
  // signals, that one more layer freezes. Only the prefix is heard of the decorators. None before
  // the first decision.
  std::optional<FreezeMask> foresee(Step within) const;

  // What decide will read at `step`: to be asked before step - 1 runs. Signals that sum over steps
  // are to be summed all the time where needed_signals(config) has them. The validation is read
  // whenever there is a new one.
  std::vector<Signal> needed_signals(Step step) const;

  const FreezeState& state() const { return state_; }

 private:
  void apply_decorators(const FreezeSignals& signals, const FreezeMask& held, Decision& decision);

  FreezeConfig config_;  // lengths in steps
  RunShape run_;
  PredictTransition predict_;
  FindRoom has_room_;
  FreezeState state_;
};

}  // namespace frazil
