#pragma once
// Says which schedules of the menu PyTorch's pipelining runtime (2.11) can run: those in which a
// device works for one pipeline, with one version of weights and without recompute as an action.

#include "planner/plan/plan.h"
#include "planner/plan/schedule_facts.h"

namespace frazil {

bool runs_in_pytorch(const ScheduleFacts& facts);

// Throws InfeasibleError for a plan with a named schedule that PyTorch does not have, in a sentence
// that says why and lists the schedules that it can run. Plans with lists of their own pass: their
// actions tell (planner/interop/pytorch_csv.h).
void refuse_foreign_schedule(const Plan& plan);

}  // namespace frazil
