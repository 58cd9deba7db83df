#include "planner/named/run_plan.h"

#include <fmt/format.h>

#include "planner/named/pipe_transformer.h"
#include "planner/plan/activity.h"
#include "planner/prediction/plan_notation.h"
#include "planner/prediction/ranking.h"
#include "profiles/error.h"

namespace frazil {
namespace {

Plan make_plan(NamedPlanner planner, Setting setting, const SearchOptions& question) {
  const int size = question.micro_batch_sizes.front();
  if (planner != NamedPlanner::kPipeTransformer) {
    return make_named_plan(planner, setting, question.mask, {question.batch_size, size});
  }
  return plan_pipe_transformer(setting, {.batch_size = question.batch_size,
                                         .mask = question.mask,
                                         .micro_batch_size = size,
                                         .max_pipelines = question.max_replicas});
}

[[noreturn]] void refuse(NamedPlanner planner, const FreezeMask& mask, std::string_view why) {
  throw InfeasibleError(fmt::format("under the mask {} the run cannot follow {}: {}", mask.text(),
                                    planner_name(planner), why));
}

}  // namespace

bool leads_runs(NamedPlanner planner) {
  switch (planner) {
    case NamedPlanner::kPipeBd:
    case NamedPlanner::kPipeBdMemory:
      return false;
    case NamedPlanner::kTorchgpipe:
    case NamedPlanner::kPipeTransformer:
    case NamedPlanner::kPipeDream:
    case NamedPlanner::kDynMo:
    case NamedPlanner::kDynMoDiffusion:
    case NamedPlanner::kUniform:
      return true;
  }
  fail_ensure(__FILE__, __LINE__, "an unknown planner");
}

std::vector<std::string_view> list_leading_planners() {
  std::vector<std::string_view> names;
  for (const std::string_view name : all_planner_names()) {
    if (leads_runs(*find_planner(name))) names.push_back(name);
  }
  return names;
}

Plan make_run_plan(NamedPlanner planner, Setting setting, const SearchOptions& question) {
  ENSURE(leads_runs(planner) && question.micro_batch_sizes.size() == 1,
         "a planner that a run can follow, and the run's micro-batches");
  Plan plan;
  try {
    plan = make_plan(planner, setting, question);
  } catch (const InfeasibleError& error) {
    refuse(planner, question.mask, error.what());
  }
  plan.reduction = question.reduction;
  const int replicas = count_replicas(plan);
  if (question.max_replicas > 0 && replicas > question.max_replicas) {
    refuse(planner, question.mask,
           fmt::format("its plan has {} replicas, and at most {} may be", replicas,
                       question.max_replicas));
  }
  if (question.cache) plan = with_cached_prefix(plan, setting.profile()).value_or(plan);
  const Candidate judged = judge_plan(plan, setting, question.clip);
  if (judged.infeasible) refuse(planner, question.mask, judged.infeasible->reason);
  return plan;
}

}  // namespace frazil
