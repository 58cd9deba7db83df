#include "planner/search/rankings/rank_plans.h"

#include <algorithm>

#include "planner/plan/schedule_facts.h"
#include "planner/prediction/plan_notation.h"
#include "planner/prediction/simplicity.h"
#include "planner/search/rankings/windows.h"

namespace frazil {
namespace {

// Plans that need no more than a cut and one of the two oldest schedules.
constexpr int kSimplePlans = 4;  // the best so many of them

// Returns the question about simple plans alone; without schedules if none is asked for.
SearchOptions simple_options(const SearchOptions& options) {
  SearchOptions simple = options;
  simple.schedules.clear();
  for (const ScheduleKind kind : options.schedules) {
    if (kind == ScheduleKind::kGpipe || kind == ScheduleKind::kOneForwardOneBackward) {
      simple.schedules.push_back(kind);
    }
  }
  simple.joint = false;
  simple.recompute = false;
  simple.shared_effort = 0;
  simple.keep = kSimplePlans;
  return simple;
}

bool is_simple(const Candidate& candidate) { return count_complications(candidate.plan) <= 1; }

// True if a simple plan is as fast as the fastest within the noise.
bool has_simple(const Ranking& ranking, Duration most) {
  return std::any_of(
      ranking.candidates.begin(), ranking.candidates.end(), [&](const Candidate& candidate) {
        return !candidate.infeasible && candidate.makespan <= most && is_simple(candidate);
      });
}

bool is_among(const RejectedShapes& shapes, const Plan& plan) {
  const ParallelShape shape = parallel_shape(plan);
  return shapes.group_devices == shape.pipeline_devices.back() && shapes.longer == 0 &&
         shapes.groups == shape.replicas && shapes.micro_batch_size == plan.micro_batch_size &&
         (!shapes.schedule || plan.schedule == ScheduleChoice{*shapes.schedule}) &&
         shapes.cached == plan.cache_frozen_prefix &&
         (shapes.rejection.why == Rejection::Why::kBound ||
          shapes.rejection.why == Rejection::Why::kSlower);
}

// Takes a plan out of what the search counts as left out, now that it is a candidate.
void uncount(const Plan& plan, Ranking& ranking) {
  const auto own =
      std::find_if(ranking.rejected.begin(), ranking.rejected.end(),
                   [&](const RejectedShapes& shapes) { return is_among(shapes, plan); });
  if (own == ranking.rejected.end()) return;
  if (--own->candidates == 0) ranking.rejected.erase(own);
}

// Adds the feasible candidates that take no longer than `most` and are new, in their order.
void add(std::vector<Candidate> simple, Duration most, Ranking& ranking) {
  for (Candidate& candidate : simple) {
    if (candidate.infeasible || candidate.makespan > most) continue;
    const bool is_known =
        std::any_of(ranking.candidates.begin(), ranking.candidates.end(),
                    [&](const Candidate& known) { return known.plan == candidate.plan; });
    if (is_known) continue;
    uncount(candidate.plan, ranking);
    ranking.candidates.push_back(std::move(candidate));
  }
  rank(ranking.candidates);
}

}  // namespace

SearchOptions ranking_options() {
  constexpr std::int64_t kEffort = 100'000;
  SearchOptions options;
  options.schedules = synchronous_schedules();
  options.joint = true;
  options.recompute = true;
  options.keep = kKeptPlans;
  options.effort = kEffort;
  options.cut_effort = kCutEffort;
  options.shared_effort = kSharedEffort;
  options.runner_up_effort = kRunnerUpEffort;
  return options;
}

SearchOptions without_efforts(SearchOptions options) {
  const SearchOptions unlimited;
  options.effort = unlimited.effort;
  options.shared_effort = unlimited.shared_effort;
  options.runner_up_effort = unlimited.runner_up_effort;
  return options;
}

Ranking rank_plans(PlanSearch& search, const SearchOptions& options, std::int64_t noise_ppm) {
  Ranking ranking = search.search(options);
  add_windows(search.setting(), options, ranking);
  if (noise_ppm == 0 || ranking.best() == nullptr) return ranking;
  const Duration most = within_noise(ranking.best()->makespan, noise_ppm);
  const SearchOptions simple = simple_options(options);
  if (!simple.schedules.empty() && !has_simple(ranking, most)) {
    add(search.search(simple).candidates, most, ranking);
  }
  prefer_simplest(ranking, noise_ppm);
  return ranking;
}

}  // namespace frazil
