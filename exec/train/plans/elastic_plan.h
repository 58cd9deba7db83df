#pragma once
// ElasticPlan makes the transition to the plan for another mask, between two steps: the planner is
// asked, the cache admits what it may hold, state moves, executors start. Each part is timed by its
// name beside its predicted time. What the mask expected next needs is prepared while steps run.

#include <optional>
#include <string>
#include <vector>

#include "exec/run/run.h"
#include "exec/train/cache_control.h"
#include "exec/train/plans/plans_ahead.h"
#include "exec/train/plans/preparation.h"
#include "exec/train/plans/replanner.h"
#include "exec/train/train_phase.h"

namespace frazil {

// Processes are lost that alone held some layers. A run that keeps checkpoints goes on from the
// newest; else it is over.
class LayersLost : public PeerLost {
 public:
  LayersLost(const std::string& sentence, int processes_left)
      : PeerLost(sentence), left(processes_left) {}
  int left;  // processes of the run that are there, the leader included
};

class ElasticPlan {
 public:
  // The references must outlive this object.
  ElasticPlan(const TrainOptions& options, Run& run, CacheControl& cache, Replanner& replanner);

  struct Transitioned {
    BegunPhase begun;
    TransitionEvent transition;
  };
  // Puts the plan for this mask in force before this step. The transition has three timed parts:
  // clang-format off
  //   plan   the planner's answers, or waiting for them, and the prediction of the step
  //   move   state to its new owners, and waiting for memory that is being reserved for it
  //   start  program, executors, cache
  // clang-format on
  // They are predicted from the overhead (planner/transitions/transition_cost.h), except for the
  // first plan, for which nothing is predicted. Throws InfeasibleError if no plan fits, or the
  // given one does not.
  Transitioned transition_to(const FreezeMask& mask, Step step);

  // Returns whether the run is to change its plan before this step though the mask stays:
  // transition_to() makes the transition. Must be called once between two steps.
  bool leaves(Step step) { return replanner_.leaves(step); }

  // Go on with the devices that are there, under a new plan for this mask, which they put in force
  // before this step: after StepUndone with those that are left, and after Run::sees_newcomers()
  // with those of processes that are ready. Return the sentences that tell of what was lost
  // meanwhile. Throw LayersLost if nobody holds some layer any more; the members are dismissed
  // then, in a durable run whose members can do so to join again.
  struct Recovered {
    std::vector<std::string> lost;
    Transitioned transitioned;
    bool plan_ready = false;  // it had been made ahead
  };
  Recovered recover(const FreezeMask& mask, Step step);
  Recovered take_in(const FreezeMask& mask, Step step);

  // Finds, after the first transition, the least that a transition costs, unless that is known (a
  // resumed run knows it). Puts the plan in force three times more, with nothing of it in the
  // processor's caches, as after a step. This takes its time.
  void find_overhead(const TransitionEvent& first);

  // Names the mask that is expected next; none: nothing is expected.
  void expect(const std::optional<FreezeMask>& mask) { preparation_.expect(mask); }
  // Goes on with the preparation, and has plans made ahead for each loss of a process, and for
  // those that are about to come; must be called between two steps.
  void go_on();

 private:
  Recovered settle(const FreezeMask& mask, Step step, std::vector<std::string> lost);
  const Plan& choose(const FreezeMask& mask, Step step);

  const TrainOptions& options_;
  Run& run_;
  CacheControl& cache_;
  Replanner& replanner_;
  Preparation preparation_;
  PlansAhead ahead_;
  std::optional<Plan> plan_;  // in force
};

}  // namespace frazil
