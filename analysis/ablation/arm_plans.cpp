#include "analysis/ablation/arm_plans.h"

#include <algorithm>
#include <utility>

#include "planner/named/run_plan.h"
#include "planner/plan/commit_round.h"
#include "planner/prediction/plan_notation.h"
#include "planner/search/rankings/rank_plans.h"
#include "profiles/error.h"

namespace frazil {
namespace {

constexpr int kKeptForDevice = 4;  // plans

ArmPlan rank_first(Setting setting, const SearchOptions& options, std::int64_t noise_ppm) {
  PlanSearch search(setting);
  const Ranking ranking = rank_plans(search, options, noise_ppm);
  const Candidate* const best = ranking.best();
  if (best == nullptr) return {std::nullopt, explain_infeasible(ranking)};
  return {best->plan, ""};
}

// With fewer micro-batches than devices not all have work, so that the plans which use most are
// meant. One that uses fewer may be faster; it is another arm's.
ArmPlan find_replicas(Setting setting, SearchOptions options) {
  options.max_stages = 1;
  options.keep =
      std::max(options.keep, kKeptForDevice * static_cast<int>(setting.cluster().devices.size()));
  PlanSearch search(setting);
  const Ranking ranking = search.search(options);
  const Candidate* widest = nullptr;
  for (const Candidate& candidate : ranking.candidates) {
    if (candidate.infeasible) continue;
    const std::size_t used = list_used_devices(candidate.plan).size();
    if (widest == nullptr || used > list_used_devices(widest->plan).size()) widest = &candidate;
  }
  if (widest == nullptr) return {std::nullopt, explain_infeasible(ranking)};
  return {widest->plan, ""};
}

ArmPlan find_pipe_transformer(Setting setting, const SearchOptions& options) {
  try {
    Plan plan = make_pipe_transformer_step_plan(setting, options);
    const StepOptions step{.clip = options.clip, .overlap = options.overlap};
    Candidate judged = judge_plan(std::move(plan), setting, step);
    if (judged.infeasible) return {std::nullopt, judged.infeasible->reason};
    return {std::move(judged.plan), ""};
  } catch (const InfeasibleError& error) {
    return {std::nullopt, error.what()};
  }
}

}  // namespace

ArmPlan find_first_plan(ArmFacts::First first, Setting setting, const SearchOptions& options,
                        std::int64_t noise_ppm) {
  SearchOptions within = options;
  switch (first) {
    case ArmFacts::First::kBest:
      break;
    case ArmFacts::First::kOneDevice:
      within.max_replicas = 1;
      within.max_stages = 1;
      break;
    case ArmFacts::First::kReplicas:
      return find_replicas(setting, options);
    case ArmFacts::First::kPipeTransformer:
      return find_pipe_transformer(setting, options);
  }
  return rank_first(setting, within, noise_ppm);
}

Plan make_pipe_transformer_step_plan(Setting setting, const SearchOptions& options) {
  if (options.micro_batch_sizes.size() == 1) {
    return make_run_plan(NamedPlanner::kPipeTransformer, setting, options);
  }
  // Its planner sets the size of micro-batches and does not read this one.
  const int size = options.batch_size;
  Plan plan = make_named_plan(NamedPlanner::kPipeTransformer, setting, options.mask,
                              {.batch_size = options.batch_size, .micro_batch_size = size});
  plan.reduction = options.reduction;
  return plan;
}

}  // namespace frazil
