#pragma once
// The plan with which an arm of an ablation begins. Plans are those of `frazil plan`: the first of
// its ranking (planner/search/rankings/rank_plans.h), within what the arm allows. That no plan fits
// is an answer, with the planner's reason.

#include <cstdint>
#include <optional>
#include <string>

#include "analysis/ablation/arm.h"
#include "planner/search/search.h"
#include "profiles/setting.h"

namespace frazil {

struct ArmPlan {
  std::optional<Plan> plan;  // with the mask of the question
  std::string reason;        // one sentence: why there is none; empty if there is one
};

// Finds the first plan by `first`. The options' mask is what trains then, and their noise is that
// of `plan --noise`.
// clang-format off
//   kBest             the first of the ranking
//   kOneDevice        likewise, of plans with one stage on one device
//   kReplicas         the fastest of the plans whose pipelines have one stage each, among those that
//                     use most devices
//   kPipeTransformer  make_pipe_transformer_step_plan()
// clang-format on
ArmPlan find_first_plan(ArmFacts::First first, Setting setting, const SearchOptions& options,
                        std::int64_t noise_ppm);

// Returns PipeTransformer's plan under the options' mask, for their batch, which does not grow. If
// the options have one size of micro-batches, as a run does, it is the plan with which such a run
// goes on (planner/named/run_plan.h); else its micro-batches are those of its own table, and
// whether the plan fits the devices' memory is not looked at. Its reductions are the options', for
// all arms have to add gradients alike. Throws InfeasibleError where its planner has no answer.
Plan make_pipe_transformer_step_plan(Setting setting, const SearchOptions& options);

}  // namespace frazil
