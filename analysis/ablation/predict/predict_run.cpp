#include "analysis/ablation/predict/predict_run.h"

#include <algorithm>

#include "planner/prediction/plan_notation.h"
#include "planner/trajectory/trajectory_candidates.h"
#include "profiles/error.h"

namespace frazil {
namespace {

std::vector<HeldSegment> hold_throughout(const Plan& plan,
                                         const std::vector<ForecastSegment>& segments) {
  std::vector<HeldSegment> walk;
  walk.reserve(segments.size());
  for (const ForecastSegment& segment : segments) walk.push_back({as_candidate(plan), segment});
  return walk;
}

// True if what the arm does depends on its first plan.
bool follows_first(const ArmFacts& facts) { return !facts.changes_plans || !facts.adds_replicas; }

// Returns the bound on replicas that the arm adds to the one of the question; 0 is none.
int bound_replicas(const ArmFacts& facts, const ArmPlan& first, int asked) {
  if (facts.adds_replicas) return asked;
  const int own = count_replicas(*first.plan);
  return asked > 0 ? std::min(asked, own) : own;
}

std::vector<HeldSegment> follow_trajectory(const ArmFacts& facts, Setting setting,
                                           const PredictionRules& rules, const ArmPlan& first,
                                           const std::vector<ForecastSegment>& segments) {
  TrajectoryOptions options{.search = without_efforts(rules.search),
                            .plans_per_mask = rules.plans_per_mask,
                            .overhead = rules.overhead,
                            .compares = false};
  options.search.max_replicas = bound_replicas(facts, first, rules.search.max_replicas);
  if (facts.caches) options.store = rules.store;
  const PlannedTrajectory planned = plan_trajectory(setting, segments, options);
  return list_held_segments(planned);
}

std::vector<HeldSegment> choose_walk(const ArmFacts& facts, Setting setting,
                                     const PredictionRules& rules, const ArmPlan& first,
                                     const std::vector<ForecastSegment>& segments) {
  if (facts.first == ArmFacts::First::kPipeTransformer) {
    const auto store = facts.caches ? rules.store : std::nullopt;
    return walk_as_pipe_transformer(setting, rules.search, segments, store,
                                    rules.pipe_transformer_caches_from);
  }
  if (!facts.changes_plans) return hold_throughout(*first.plan, segments);
  return follow_trajectory(facts, setting, rules, first, segments);
}

}  // namespace

std::string_view name_of(PredictionBasis basis) {
  switch (basis) {
    case PredictionBasis::kForecast:
      return "configuration";
    case PredictionBasis::kRecordedMasks:
      return "recorded masks";
    case PredictionBasis::kTimeOfAll:
      return "time of all";
  }
  ENSURE(false, "unknown basis");
}

PredictedRun predict_run(Arm arm, Setting setting, const PredictionRules& rules,
                         const ArmPlan& first, const std::vector<ForecastSegment>& segments) {
  ENSURE(!segments.empty(), "some segment");
  const ArmFacts& facts = facts_of(arm);
  PredictedRun run{.arm = arm, .reason = {}, .walk = {}, .times = {}};
  if (!first.plan && follows_first(facts)) {
    run.reason = first.reason;
    return run;
  }
  const WalkRules walk_rules{rules.search, rules.overhead, rules.store};
  try {
    run.walk = choose_walk(facts, setting, rules, first, segments);
    run.times = time_walk(setting, walk_rules, run.walk);
  } catch (const InfeasibleError& error) {
    run.reason = error.what();
    run.walk.clear();
  }
  return run;
}

}  // namespace frazil
