#pragma once
// Chooses plans for a run whose masks are not known before they come, by the work function rule
// (work_function.h). The plans among which it chooses grow: a mask that comes brings the best plans
// under it. A plan that comes late is one that no task could have been done in before; the rule
// would have decided alike had it been there, so that its guarantee holds for all plans together,
//   cost <= factor x hindsight + additive,  with n the plans at the end
// where hindsight knows all masks and may hold each plan from the first mask on that brought it.
// Costs are predicted: steps as simulated, of a plan that caches its frozen prefix with a cache
// that is full; transitions priced alike both ways, for the state of a model that trains wholly.

#include <optional>
#include <vector>

#include "planner/bounds/search_options.h"
#include "planner/plan/activity.h"
#include "planner/trajectory/work_function.h"
#include "planner/transitions/feature_store.h"
#include "planner/transitions/transition_cost.h"
#include "profiles/setting.h"

namespace frazil {

class StepTimes;

struct OnlineOptions {
  SearchOptions search;  // its mask is not read
  TransitionOverhead overhead = {};
  std::optional<FeatureStore> store = std::nullopt;
};

class OnlinePlans {
 public:
  // Begins with this plan. The profile and the cluster must outlive this.
  OnlinePlans(Setting setting, OnlineOptions options, const Plan& held);

  // Says that steps are under this mask from now on. `found`: the best plans under it
  // (trajectory_candidates.h), which are chosen from as well if they are not yet; where there are
  // 64 plans already only the first of them is. Requires: some plan runs under the mask.
  void begin(const FreezeMask& mask, const std::vector<Plan>& found);
  // Takes so many more steps and returns the plan in which the last of them is done. Requires: a
  // mask, at least one step.
  const Plan& serve(Step steps);

  const Plan& held() const { return plans_[rule_.state()]; }
  const std::vector<Plan>& plans() const { return plans_; }
  const WorkFunction& rule() const { return rule_; }

 private:
  void add(const Plan& plan);
  Duration price(const Plan& from, const Plan& to) const;
  Duration step_time(StepTimes& times, std::size_t plan, int depth) const;

  Setting setting_;
  OnlineOptions options_;
  Activity trained_;  // of a model that trains wholly
  std::vector<Plan> plans_;
  WorkFunction rule_;
  std::vector<Duration> task_;  // time of a step under the mask, by plan
};

}  // namespace frazil
