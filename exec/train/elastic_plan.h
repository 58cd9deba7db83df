#pragma once
// Going to the plan for another mask, between two steps: the planner is asked, the cache admits
// what it may hold, state moves, executors start. Each part is timed by its name beside what it was
// predicted to take. What the mask expected next needs is prepared while steps run.

#include <optional>

#include "exec/run/run.h"
#include "exec/train/cache_control.h"
#include "exec/train/preparation.h"
#include "exec/train/replanner.h"
#include "exec/train/train_phase.h"

namespace frazil {

class ElasticPlan {
 public:
  // References outlive this.
  ElasticPlan(const TrainOptions& options, Run& run, CacheControl& cache, Replanner& replanner);

  struct Switched {
    BegunPhase begun;
    TransitionEvent transition;
  };
  // Puts the plan for this mask in force before this step. Its parts are
  //   plan   the planner's answers, or waiting for them, and the step as it is predicted
  //   move   state to its new owners, and waiting for memory that is being reserved for it
  //   start  program, executors, cache
  // Predicted: as the overhead says (planner/transitions/transition_cost.h); of the first nothing.
  // Throws InfeasibleError where no plan fits, or the given one does not.
  Switched go_to(const FreezeMask& mask, Step step);

  // After the first: what going on from it costs at least, if it is not known (a run that is
  // resumed knows it), found by putting the same plan in force three times more, with nothing of
  // it in the processor's caches, as after a step. Takes its time.
  void find_overhead(const TransitionEvent& first);

  // The mask that is expected next; none: nothing is.
  void expect(const std::optional<FreezeMask>& mask) { preparation_.expect(mask); }
  // Between two steps.
  void go_on() { preparation_.go_on(); }

 private:
  const Plan& choose(const FreezeMask& mask, Step step);

  const TrainOptions& options_;
  Run& run_;
  CacheControl& cache_;
  Replanner& replanner_;
  Preparation preparation_;
  std::optional<Plan> plan_;  // in force
};

}  // namespace frazil
