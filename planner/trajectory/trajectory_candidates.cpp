#include "planner/trajectory/trajectory_candidates.h"

#include <algorithm>
#include <utility>

#include "planner/plan/activity.h"
#include "planner/search/advice.h"
#include "profiles/error.h"

namespace frazil {
namespace {

void add_best(const Ranking& ranking, int most, std::vector<Plan>& candidates) {
  int taken = 0;
  for (const Candidate& candidate : ranking.candidates) {
    if (candidate.infeasible || taken == most) break;
    Plan plan = as_candidate(candidate.plan);
    if (std::find(candidates.begin(), candidates.end(), plan) == candidates.end()) {
      candidates.push_back(std::move(plan));
    }
    ++taken;
  }
}

}  // namespace

Plan as_candidate(Plan plan) {
  plan.mask = FreezeMask::all_active(plan.mask.blocks());
  plan.cache_frozen_prefix = false;
  return plan;
}

void add_candidates(PlanSearch& search, Setting setting, const CandidateQuestion& question,
                    std::vector<Plan>& candidates) {
  const ModelProfile& profile = setting.profile();
  SearchOptions options = question.search;
  options.keep = std::max(question.plans_per_mask, options.keep);
  const Ranking ranking = search.search(options);
  if (ranking.best() == nullptr) {
    throw InfeasibleError("under the mask " + options.mask.text() + " " +
                          explain_no_plan(profile, {setting.cluster(), options}, ranking));
  }
  add_best(ranking, question.plans_per_mask, candidates);
  const Activity activity = find_activity(profile, options.mask);
  if (!question.may_cache || count_frozen_prefix(profile, activity) == 0) return;
  options.cache = true;
  add_best(search.search(options), question.plans_per_mask, candidates);
}

}  // namespace frazil
