#pragma once
// clang-format off
// The plan with which a run goes on under a mask if another system's planner decides for it. A run
// has its batch, its size of micro-batches and its reduction mode, and may limit its replicas; left
// for the planner are stages, devices, pipelines and schedule:
//   pipetransformer   pipeline length, pipelines and cuts by its own rules; the run's micro-batches
//                     are dealt to the pipelines in place of the table's number (count_micro_batches)
//   pipe-bd, pipe-bd-memory   no run follows them: a batch is one micro-batch there, which devices
//                     share by samples, so that sums of gradients are not those of a run
//   all others        as planner/named/named_planner.h says
// clang-format on

#include <string_view>
#include <vector>

#include "planner/named/named_planner.h"
#include "planner/search/search.h"
#include "profiles/setting.h"

namespace frazil {

// True if a run can go on with the planner's plans.
bool leads_runs(NamedPlanner planner);
// Returns the names of the planners that do.
std::vector<std::string_view> list_leading_planners();

// Returns the plan for `question`, of which it reads batch_size, the one micro-batch size, mask,
// reduction, max_replicas, clip and cache: with a cache the plan caches its frozen prefix where its
// stages allow that. Throws InfeasibleError, which names planner and mask, where the
// planner has no plan, where its plan has more replicas than the question allows, and where the
// plan does not fit or is refused by the simulator. Requires: leads_runs(planner).
Plan make_run_plan(NamedPlanner planner, Setting setting, const SearchOptions& question);

}  // namespace frazil
