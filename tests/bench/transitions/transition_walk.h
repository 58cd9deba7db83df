#pragma once
// Walks a model with AdamW state at random between plans on one to four devices, in process, under
// masks that grow and shrink, and times each transition beside its prediction.

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
  bool is_surprise = false;  // memory had been reserved for another plan
  TransitionTimes predicted;
  TransitionTimes measured;
  MoveReport move;
  Duration program{0};  // with executors and cache: the parts of the start
  Duration executors{0};
  Duration cache{0};
  Duration warm_up{0};  // first step after the transition less the second
};

class TransitionWalk {
 public:
  // `surprises` of a hundred transitions go to another plan than the expected one.
  TransitionWalk(const BenchModel& model, std::uint64_t seed, int surprises);

  // Puts the first plan in force and measures what predictions need before the first transition.
  void begin();
  // Takes and times one transition. Requires begin().
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
