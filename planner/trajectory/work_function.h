#pragma once
// Changes states without knowing what comes, by the work function rule for metrical task systems
// (Borodin, Linial, Saks 1992, J. ACM 39(4)). Tasks come one at a time, each with its cost in every
// state; before it pays for a task, the rule may change its state at a price d that is a metric.
// With n states and D the largest price, the rule pays, whatever the tasks are,
//   at most (2n - 1) x (what hindsight would have paid from the same start) + (2n - 2) x D.
// No deterministic rule has a smaller factor for every metric.

#include <cstddef>
#include <vector>

#include "profiles/units.h"

namespace frazil {

using Prices = std::vector<std::vector<Duration>>;  // [from][to]

// Returns the largest metric that is nowhere above max(p(a, b), p(b, a)): the prices for which the
// guarantee holds.
Prices make_metric(const Prices& prices);

class WorkFunction {
 public:
  // Requires: a metric with finite prices; start < its size.
  WorkFunction(Prices metric, std::size_t start);

  // Adds a state in which none of the tasks so far could have been done, the last by its index.
  // `prices`: what going there from each state, or back, costs at most; they are changed where they
  // would make no metric with those that there are: lowered to a way through a third state, then
  // all raised until none of the old ones is above a way through the new state. All guarantees hold
  // as if the state had been there from the beginning. Requires: a finite price for each state.
  void add_state(const std::vector<Duration>& prices);

  // Takes the next task, by its cost in each state (kFarAway: it cannot be done there). Returns the
  // state in which the task is done. Requires: some state can do the task.
  std::size_t serve(const std::vector<Duration>& task);
  // Takes the same task `count` times, as so many calls of serve(task) would, in time that grows
  // with the logarithm of `count`. Returns the state of the last time.
  std::size_t serve(const std::vector<Duration>& task, Step count);

  std::size_t state() const { return state_; }
  std::size_t states() const { return metric_.size(); }
  Duration paid() const { return paid_; }
  int changes() const { return changes_; }
  // Returns what hindsight would have paid for all tasks so far.
  Duration hindsight() const;
  // paid() is never more than factor() x hindsight() + additive().
  std::size_t factor() const { return 2 * metric_.size() - 1; }
  Duration additive() const;

 private:
  std::vector<Duration> work_after(const std::vector<Duration>& task, Step count) const;
  Duration work_after(const std::vector<Duration>& task, Step count, std::size_t end) const;
  bool is_stay(const std::vector<Duration>& task, Step time) const;
  Step count_stays(const std::vector<Duration>& task, Step most) const;

  Prices metric_;
  std::vector<Duration> work_;  // least cost of all tasks so far, ending in that state
  std::size_t state_;
  Duration paid_{0};
  int changes_ = 0;
};

}  // namespace frazil
