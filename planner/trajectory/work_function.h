#pragma once
// Changing states without knowing what comes: the work function rule for metrical task systems
// (Borodin, Linial, Saks 1992, J. ACM 39(4)). Tasks come one at a time, each with its cost in every
// state; before paying, the rule may change its state at a price d that is a metric. With n states
// and D the largest price it pays, whatever the tasks are,
//   at most (2n - 1) x (what hindsight would have paid from the same start) + (2n - 2) x D.
// No deterministic rule has a smaller factor for every metric.

#include <cstddef>
#include <vector>

#include "profiles/units.h"

namespace frazil {

using Prices = std::vector<std::vector<Duration>>;  // [from][to]

// The largest metric below max(p(a, b), p(b, a)): what a rule with a guarantee may be charged with.
Prices make_metric(const Prices& prices);

class WorkFunction {
 public:
  // Requires: a metric with finite prices; start < its size.
  WorkFunction(Prices metric, std::size_t start);

  // The next task, its cost in each state (kFarAway: it cannot be done there; in some state it
  // can). Returns the state in which it is done.
  std::size_t serve(const std::vector<Duration>& task);

  std::size_t state() const { return state_; }
  Duration paid() const { return paid_; }
  int changes() const { return changes_; }
  // What hindsight would have paid for all tasks so far.
  Duration hindsight() const;
  // paid() is never more than factor() x hindsight() + additive().
  std::size_t factor() const { return 2 * metric_.size() - 1; }
  Duration additive() const;

 private:
  Prices metric_;
  std::vector<Duration> work_;  // least cost of all tasks so far, ending in that state
  std::size_t state_;
  Duration paid_{0};
  int changes_ = 0;
};

}  // namespace frazil
