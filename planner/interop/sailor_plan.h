#pragma once
// Converts a plan of Sailor to a plan and a cluster of ours. A device stands for one of the GPUs
// that share a stage of a replica by tensor parallelism: these GPUs all do the same work on parts
// of the same size, and the profile of their tensor-parallel degree tells what one GPU takes. So
// tensor parallelism is in the profile, not in the plan. Of S stages, stage s of replica r is on
// device r S + s. Replicas are equal pipelines that own consecutive micro-batches and reduce
// gradients in a ring. The schedule is 1F1B.

#include "planner/plan/plan.h"
#include "profiles/cluster.h"
#include "profiles/import/sailor_links.h"
#include "profiles/import/sailor_plan.h"
#include "profiles/model_profile.h"

namespace frazil {

// Returns the plan in our terms. Requires: the profile has the plan's layers.
Plan make_sailor_plan(const SailorPlan& plan, const ModelProfile& profile);

// Changes to the measured links; the defaults change nothing.
struct SailorLinkScale {
  double reduction = 1;          // factor on the measured bandwidth between replicas
  Duration message_overhead{0};  // added to the wire time of each message between stages
  int standing_ends = 1;         // stages that a message blocks: factor on its wire time
};

// Makes the hosts, devices and links of the plan. Each GPU sends a whole boundary tensor over its
// own link out of the node (the bandwidth fit of one sender), at the bandwidth for that message
// size. A ring between replicas sends shares of a stage's parameters. Devices have no memory limit,
// as Sailor's files name none. Throws InputError where no bandwidth was measured for one sender or
// for a size.
Cluster make_sailor_cluster(const SailorPlan& plan, const ModelProfile& profile,
                            const SailorLinks& links, const SailorLinkScale& scale = {});

}  // namespace frazil
