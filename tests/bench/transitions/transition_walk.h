#pragma once
// A model with AdamW state that walks at random between plans on one to four devices, in process,
// under masks that grow and shrink, each transition timed beside what is predicted of it.

#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "exec/cache/prefix_cache.h"
#include "exec/run/run.h"
#include "planner/search/search.h"
#include "planner/transitions/transition_cost.h"
#include "tests/bench/support/bench_run.h"
#include "traces/freeze_trace.h"

namespace frazil {

struct WalkedTransition {
  std::string name;
  bool is_surprise = false;  // memory was reserved for another plan
  TransitionTimes predicted;
  TransitionTimes measured;
  MoveReport move;
  Duration program{0};  // parts of the start
  Duration executors{0};
  Duration cache{0};
  Duration warm_up{0};  // first step less the second
};

class TransitionWalk {
 public:
  // In `surprises` of a hundred transitions another plan comes than the expected one.
  TransitionWalk(const BenchModel& model, std::uint64_t seed, int surprises);

  // The first plan, and what is known before the first transition.
  void begin();
  // Requires: begin().
  WalkedTransition take();

 private:
  Plan draw();
  Plan draw_other(const Plan& before);
  Plan expect_and_draw(WalkedTransition& taken);
  Duration ask(const FreezeMask& mask);
  Duration train();

  OptimizerConfig optimizer_;  // AdamW
  Run run_;
  ModelProfile profile_;
  Cluster cluster_;
  PlanSearch search_;
  std::mt19937_64 random_;
  int surprises_;
  BenchPlan shape_;
  std::vector<std::vector<Samples>> batches_;
  std::vector<std::int64_t> ids_;
  FileSystem files_ = real_file_system();
  std::optional<PrefixCache> cache_;
  TransitionOverhead overhead_;
  Step step_ = 0;
};

}  // namespace frazil
