#pragma once
// A schedule lists for each device the actions that it performs, in order. A generator makes a
// compute schedule (F I W B R and pairs; U where a schedule updates among its backwards).
// complete_schedule() inserts what follows from the plan: SEND and RECV between devices,
// REDUCE_GRAD where a layer has several owners, U, and a BARRIER when asked for.

#include <string>
#include <vector>

#include "planner/plan/activity.h"
#include "planner/plan/plan.h"
#include "profiles/model_profile.h"
#include "traces/action.h"

namespace frazil {

struct Schedule {
  std::vector<std::vector<Action>> devices;  // by DeviceId
  friend bool operator==(const Schedule&, const Schedule&) = default;
};

// Writes a line per device, "d0: 0F0 0F1 0B0 0B1".
std::string to_text(const Schedule& schedule);

// Completes a compute schedule from the layer DAG, never from "stage +- 1".
// clang-format off
//   messages  SEND_F comes right after its F and RECV_F right before the F that reads it; SEND_B
//             and RECV_B likewise for edges that carry a gradient. A message goes between the two
//             devices that a micro-batch has in both stages, if they differ; between stages with
//             slices there is one message for each two slices with samples in common.
//   updates   At the end of each device's list, each stage with an update has a REDUCE_GRAD, iff a
//             layer of the stage, or a parameter tied to one, has several owners
//             (planner/plan/reduction_groups.h), then a U, unless the schedule places its updates
//             itself. Stages come in the order of their first layers, so that owners meet in one
//             order everywhere. A device without a micro-batch of its own joins both.
// clang-format on
// Actions of stages with nothing to do (B of a frozen stage) are dropped. `barrier` puts one
// BARRIER per device between all its reductions and its updates: clipping by the global norm needs
// all gradients, and so does a commit round (planner/plan/commit_round.h). Throws InfeasibleError
// if updates among the backwards meet several owners or `barrier`.
Schedule complete_schedule(const Schedule& compute, const Plan& plan, const ModelProfile& profile,
                           const Activity& activity, bool barrier = false);

}  // namespace frazil
