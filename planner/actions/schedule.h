#pragma once
// A schedule: for each device, the actions it performs, in order. A compute schedule (F I W B R and
// pairs) is made by a generator; complete_schedule inserts what follows from the plan: SEND/RECV
// between devices, REDUCE_GRAD where a layer has several owners, U, and a BARRIER when asked for.

#include <string>
#include <string_view>
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

// A line per device, "d0: 0F0 0F1 0B0 0B1"; parse_schedule is its inverse and throws
// InputError{file, line}.
std::string to_text(const Schedule& schedule);
Schedule parse_schedule(std::string_view text, const std::string& file);

// Inserts, derived from the layer DAG and never from "stage +- 1": SEND_F right after its F and
// RECV_F right before the F that reads it, SEND_B / RECV_B likewise for edges that carry a
// gradient, between the devices that a micro-batch has in both stages, where they differ (where
// stages have slices, one for each two that have samples in common); and at
// the end of each device's list, per stage with an update, in the order of their first layers (so
// that owners meet in the same order everywhere): REDUCE_GRAD iff its layers have several owners,
// or a parameter tied to one of them has (planner/plan/reduction_groups.h), then U, unless the
// schedule places its updates itself. A device without a micro-batch of its own joins both. Actions
// of stages with nothing to do (B of a frozen stage) are dropped. `clip` puts one BARRIER per
// device between all its reductions and its updates (a global norm needs all gradients).
Schedule complete_schedule(const Schedule& compute, const Plan& plan, const ModelProfile& profile,
                           const Activity& activity, bool clip = false);

}  // namespace frazil
