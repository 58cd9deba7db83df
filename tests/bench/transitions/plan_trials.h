#pragma once
// Tries plans of one model in turn in one process, on the data of one run, and profiles the model
// on that machine in the same minutes, so that predictions can be compared with measurements.

#include <functional>
#include <vector>

#include "exec/profile/profiler.h"
#include "exec/run/run.h"
#include "tests/bench/support/bench_run.h"

namespace frazil {

struct Stretch {
  int warm_up = 2;  // steps after each transition that do not count
  int steps = 6;
};

class PlanTrials {
 public:
  PlanTrials(const BenchModel& model, int micro_batches, std::uint64_t seed, int devices);

  MeasuredProfile measure(int rounds, const std::function<void(int, int)>& progress) const;
  // Returns the mean seconds of a step under `plan`. As in a training and in the profile, a step
  // includes gathering its samples. Throws InfeasibleError if the executor refuses the plan.
  double time_steps(const Plan& plan, const Stretch& stretch);

  const RunConfig& config() const { return config_; }
  const ModelProfile& structure() const { return run_.structure(); }

 private:
  double time_step();

  RunConfig config_;
  Dataset data_;
  std::vector<std::int64_t> order_;
  int devices_;
  Run run_;
  Step step_ = 0;
};

// Returns the positions 0..count-1 in an order drawn from (seed, round) alone.
std::vector<std::size_t> draw_order(std::size_t count, std::uint64_t seed, int round);

}  // namespace frazil
