#include "planner/freezing/predict_switch.h"

#include "planner/activity.h"
#include "planner/simulate_plan.h"
#include "profiles/error.h"

namespace frazil {

PredictedSwitch predict_switch(const Plan& held, const FreezeMask& to, const ModelProfile& profile,
                               const Cluster& cluster, SearchOptions search,
                               const TransitionOverhead& overhead) {
  search.mask = to;
  const Ranking ranking = search_plans(profile, cluster, search);
  const Candidate* best = ranking.best();
  if (best == nullptr) throw InfeasibleError("no plan fits under the mask " + to.text());
  const Duration now =
      simulate_plan(held, profile, cluster, {.clip = search.clip, .overlap = search.overlap})
          .makespan;
  const TransitionCost cost = predict_transition(held, best->plan, profile, cluster,
                                                 find_activity(profile, held.mask), overhead);
  return {.saved_per_step = now - best->makespan, .cost = cost.total};
}

}  // namespace frazil
