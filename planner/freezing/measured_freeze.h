#pragma once
// The policies that read signals: what they want is a function of configuration, state, signals,
// the mask that was in force while the signals were measured, and the run shape. Every such policy
// freezes front first and judges an interval when it is over: decision T >= 1 is due from step
// start + T x interval on. A policy whose signals are missing, negative, not finite or above 1e100
// leaves everything as it is and looks again at the next step.

#include <span>
#include <variant>
#include <vector>

#include "planner/freezing/freeze_policy.h"
#include "planner/freezing/freeze_schedule.h"
#include "planner/freezing/run_shape.h"
#include "planner/freezing/signals.h"

namespace frazil {

struct NoState {  // for policies that read the step alone
  friend bool operator==(const NoState&, const NoState&) = default;
};

struct PaperState {
  Step decided = 0;    // T of the last decision
  double reached = 0;  // L_f(T), unrounded
  friend bool operator==(const PaperState&, const PaperState&) = default;
};

struct AutoFreezeState {
  Step decided = 0;                   // T of the last decision
  int frozen = 0;                     // layers
  std::vector<double> previous = {};  // interval_gradients at the last decision; empty before it
  friend bool operator==(const AutoFreezeState&, const AutoFreezeState&) = default;
};

struct PlasticityState {
  struct Block {
    double smoothed = 0;   // moving average of plasticity
    double largest = 0;    // largest value that `smoothed` has had
    bool is_read = false;  // whether plasticity was read at all
    int calm = 0;          // decisions in a row within the tolerance, counted up to `patience`
    friend bool operator==(const Block&, const Block&) = default;
  };
  Step decided = 0;                // T of the last decision
  int frozen = 0;                  // layers
  double rate = 0;                 // learning rate when a layer first froze; 0: none is frozen
  std::vector<Block> blocks = {};  // by block; empty before the first reading
  friend bool operator==(const PlasticityState&, const PlasticityState&) = default;
};

using PolicyState = std::variant<NoState, PaperState, AutoFreezeState, PlasticityState>;

PolicyState initial_state(const FreezePolicy& policy);
// Tells whether this policy can have this state on a model with `blocks` blocks.
bool is_state_of(const FreezePolicy& policy, const PolicyState& state, int blocks);

// Tells whether the policy reads signals at this step. Requires: a policy paced in steps.
bool is_due(const FreezePolicy& policy, const PolicyState& state, Step step);

struct Judged {
  Wanted wanted;
  PolicyState state;
};

// Returns what any policy, also one that reads the step alone, wants at signals.step, and its next
// state. Requires: a policy paced in steps, and a state of this policy.
Judged want(const FreezePolicy& policy, const PolicyState& state, const FreezeSignals& signals,
            const FreezeMask& held, const RunShape& run);

// Returns the first operand of the minimum in eq. 1 of PipeTransformer (He et al. 2021), with
// `reached` = L_f(T-1) and `layers` = L:
//   L_f(T) = min(L_f(T-1) + alpha (L - L_f(T-1)), argmin over l in {L_f(T-1)..L} of |g_l|)
// l counts blocks, with the embedding as 0. The argmin compares only blocks that have a gradient
// and takes the first of equal ones. ceil(L_f(T)) layers are frozen (AlphaFreeze's rounding).
double paper_bound(double reached, double alpha, int layers);

// Returns AutoFreeze's eta = | |previous|_1 - |now|_1 | / |previous|_1, from the two L1 norms; 0
// where both norms are 0, infinite where only the previous one is.
double gradient_change(double previous, double now);

// Returns the value at rank percentile / 100 (n - 1), counted from 0, of the sorted values, with
// linear interpolation between the two closest ranks. Requires: a value, percentile in [0, 100].
double percentile_of(std::vector<double> values, double percentile);

}  // namespace frazil
