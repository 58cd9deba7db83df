#pragma once
// The freeze authority decides which blocks are frozen: a policy and the decorators around it. A
// run has one authority, which may decide at any step; every other part is told. Equal
// configuration, run shape and sequence of signals give equal decisions. The state is a plain
// value, so an authority made from a saved state continues exactly where the saved one stopped.

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
  // Blocks without trainable parameters run in evaluation mode throughout, as if they were frozen.
  bool freeze_untrainable = false;
  friend bool operator==(const FreezeConfig&, const FreezeConfig&) = default;
};

struct FreezeState {
  std::optional<Step> step;     // of the last decision; none before the first
  FreezeMask mask;              // in force since `step`; meaningless before the first decision
  std::optional<Step> changed;  // step of the last change of the mask; the first decision is none
  PolicyState policy;
  HysteresisState hysteresis;
  ValidationGuardState guard;
  friend bool operator==(const FreezeState&, const FreezeState&) = default;
};

// Tells whether some plan for this mask fits into the devices' memory.
using FindRoom = std::function<bool(const FreezeMask& mask)>;

// Decision::by where a mask is declined because no plan has room for it.
inline constexpr const char* kNoRoom = "memory";

struct Decision {
  FreezeMask mask;       // holds from this step on
  bool changed = false;  // against the decision before; the first decision counts as a change
  std::string by;        // policy or decorator that settled it ("pt-paper", "prefix"), or kNoRoom
  std::string reason;    // one sentence
  friend bool operator==(const Decision&, const Decision&) = default;
};

// Lists every signal that a run under this configuration may have to measure, in the order of
// Signal.
std::vector<Signal> needed_signals(const FreezeConfig& config);
// Tells whether the configuration needs a PredictTransition: it has an amortisation gate.
bool needs_prediction(const FreezeConfig& config);

FreezeState initial_state(const FreezeConfig& config);

class FreezeAuthority {
 public:
  // Starts a run, or continues one from a saved state. A change of the mask that `has_room` denies
  // is declined, and tried again as long as the policy wants it; without `has_room` all masks fit.
  // Requires: `predict` where needs_prediction(config); a state of this configuration and model.
  FreezeAuthority(const FreezeConfig& config, const RunShape& run, PredictTransition predict = {},
                  FindRoom has_room = {});
  FreezeAuthority(const FreezeConfig& config, const RunShape& run, FreezeState state,
                  PredictTransition predict = {}, FindRoom has_room = {});

  // Decides the mask from signals.step on. A second call for the same step returns the same mask,
  // unchanged. The first decision has no mask to change and consults only the prefix and the guard.
  // Requires: steps never decrease.
  Decision decide(const FreezeSignals& signals);

  // Guesses the next mask after the held one. For a policy that reads the step alone it is the next
  // mask that differs, if one comes within `within` steps and before the end of the run; for a
  // policy that reads signals it has one more frozen layer, if one is left. Applies the prefix and
  // no other decorator. None before the first decision, and where there is no next mask.
  std::optional<FreezeMask> foresee(Step within) const;

  // Lists the signals that decide() will read at `step`; ask before step - 1 runs, which measures
  // them. Signals that sum over steps must be summed in every step where needed_signals(config)
  // lists them. A new validation is read at any step.
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
