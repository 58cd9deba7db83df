#include "planner/freezing/predict_switch.h"

#include "planner/activity.h"

namespace frazil {

PredictedSwitch predict_switch(const Plan& held, const Plan& next, const ModelProfile& profile,
                               const Cluster& cluster, const StepOptions& options,
                               const TransitionOverhead& overhead) {
  const TransitionCost cost =
      predict_transition(held, next, profile, cluster, find_activity(profile, held.mask), overhead);
  return {.saved_per_step = simulate_plan(held, profile, cluster, options).makespan -
                            simulate_plan(next, profile, cluster, options).makespan,
          .cost = cost.total};
}

}  // namespace frazil
