#pragma once
// What the policies want that read signals: functions of configuration, state, signals, the mask
// that was in force while they were measured, and the shape of the run. Every such policy freezes
// front first and judges an interval when it is over: decision T >= 1 is due from step
// start + T x interval on. Where its signals are missing, negative or not finite it leaves
// everything as it is and looks again at the next step.

#include <span>
#include <variant>
#include <vector>

#include "planner/freezing/freeze_policy.h"
#include "planner/freezing/freeze_schedule.h"
#include "planner/freezing/signals.h"

namespace frazil {

struct NoState {  // of a policy that reads the step alone
  friend bool operator==(const NoState&, const NoState&) = default;
};

struct PaperState {
  Step decided = 0;    // T of the last decision
  double reached = 0;  // L_f(T), unrounded
  friend bool operator==(const PaperState&, const PaperState&) = default;
};

struct AutoFreezeState {
  Step decided = 0;
  int frozen = 0;                     // layers
  std::vector<double> previous = {};  // interval_gradients of the last decision; empty: none yet
  friend bool operator==(const AutoFreezeState&, const AutoFreezeState&) = default;
};

struct PlasticityState {
  struct Block {
    double smoothed = 0;
    double largest = 0;  // that smoothed has been
    bool is_read = false;
    int calm = 0;  // decisions in a row within the tolerance
    friend bool operator==(const Block&, const Block&) = default;
  };
  Step decided = 0;
  int frozen = 0;
  double rate = 0;                 // learning rate at the first freezing; 0: nothing is frozen
  std::vector<Block> blocks = {};  // empty: nothing read yet
  friend bool operator==(const PlasticityState&, const PlasticityState&) = default;
};

using PolicyState = std::variant<NoState, PaperState, AutoFreezeState, PlasticityState>;

PolicyState initial_state(const FreezePolicy& policy);
// The state is one that this policy on a model of so many blocks can have.
bool is_state_of(const FreezePolicy& policy, const PolicyState& state, int blocks);

// Whether the policy, in steps, reads signals at this step.
bool is_due(const FreezePolicy& policy, const PolicyState& state, Step step);

struct Judged {
  Wanted wanted;
  PolicyState state;
};

// Requires: a policy in steps, a state of its own.
Judged want(const FreezePolicy& policy, const PolicyState& state, const FreezeSignals& signals,
            const FreezeMask& held, const RunShape& run);

// Eq. 1 of PipeTransformer (He et al. 2021):
//   L_f(T) = min(L_f(T-1) + alpha (L - L_f(T-1)), argmin over l in {L_f(T-1)..L} of |g_l|)
// l counts blocks, the embedding 0; only blocks with a gradient are compared, of equal ones the
// first is taken. ceil(L_f(T)) layers are frozen (AlphaFreeze's rounding).
double paper_bound(double reached, double alpha, int layers);

// eta = | |previous|_1 - |now|_1 | / |previous|_1; 0 where both are 0, infinite where previous is.
double gradient_change(double previous, double now);

// Between the closest ranks, in a line: rank p / 100 (n - 1), counted from 0, of values in order.
// Requires: values.
double percentile_of(std::vector<double> values, double percentile);

}  // namespace frazil
