#include "analysis/ablation/first_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "planner/named/named_planner.h"
#include "planner/plan/commit_round.h"
#include "planner/prediction/plan_notation.h"
#include "planner/search/advice.h"
#include "planner/search/rank_plans.h"
#include "profiles/error.h"

namespace frazil {
namespace {

FirstPlan best_of(const SearchOptions& question, Setting setting) {
  PlanSearch search(setting);
  const Ranking ranking = rank_plans(search, question, kNoisePpm);
  if (const Candidate* const best = ranking.best()) return {best->plan};
  return {std::nullopt, explain_no_plan(setting.profile(), {setting.cluster(), question}, ranking)};
}

// Returns the fastest of the plans with one stage that use most devices: with fewer micro-batches
// than devices not all have work.
FirstPlan find_replicas(SearchOptions question, Setting setting) {
  question.max_stages = 1;
  const auto devices = static_cast<int>(setting.cluster().devices.size());
  const int micro_batches = divide_up(
      question.batch_size, question.micro_batch_sizes.empty() ? question.batch_size
                                                              : question.micro_batch_sizes.front());
  const auto wanted = static_cast<std::size_t>(std::min(devices, micro_batches));
  question.keep = std::max(question.keep, 4 * devices);
  PlanSearch search(setting);
  const Ranking ranking = search.search(question);
  for (const Candidate& candidate : ranking.candidates) {
    if (!candidate.infeasible && list_used_devices(candidate.plan).size() == wanted) {
      return {candidate.plan};
    }
  }
  if (ranking.best() == nullptr) {
    return {std::nullopt,
            explain_no_plan(setting.profile(), {setting.cluster(), question}, ranking)};
  }
  return {std::nullopt, fmt::format("the whole model fits on some devices, but not on {}", wanted)};
}

FirstPlan find_pipe_transformer(const SearchOptions& question, Setting setting) {
  const JudgedPlan judged = judge_named_planner(NamedPlanner::kPipeTransformer, setting, question);
  if (judged.candidate.infeasible) return {std::nullopt, judged.candidate.infeasible->reason};
  return {judged.candidate.plan};
}

FirstPlan find_plan_of(ArmFacts::First first, Setting setting, SearchOptions question) {
  switch (first) {
    case ArmFacts::First::kBest:
      return best_of(question, setting);
    case ArmFacts::First::kOneDevice:
      question.max_stages = 1;
      question.max_replicas = 1;
      return best_of(question, setting);
    case ArmFacts::First::kReplicas:
      return find_replicas(question, setting);
    case ArmFacts::First::kPipeTransformer:
      return find_pipe_transformer(question, setting);
  }
  ENSURE(false, "unknown first plan");
}

}  // namespace

FirstPlan find_first_plan(ArmFacts::First first, Setting setting, const SearchOptions& question) {
  try {
    return find_plan_of(first, setting, question);
  } catch (const InfeasibleError& error) {
    return {std::nullopt, error.what()};
  }
}

}  // namespace frazil
