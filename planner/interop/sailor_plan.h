#pragma once
// A plan of Sailor in our terms. A device stands for one of the GPUs that share a stage of a
// replica by tensor parallelism: they all do the same, on parts of the same size, and the profile
// of their degree says what one of them takes. So tensor parallelism is in the profile, not in the
// plan. Replica r, stage s is device r x stages + s; replicas are equal pipelines that own
// consecutive micro-batches and reduce gradients in a ring; the schedule is 1F1B.

#include "planner/plan/plan.h"
#include "profiles/cluster.h"
#include "profiles/import/sailor_links.h"
#include "profiles/import/sailor_plan.h"
#include "profiles/model_profile.h"

namespace frazil {

// Requires: the profile has the plan's layers.
Plan make_sailor_plan(const SailorPlan& plan, const ModelProfile& profile);

// Changes to what the links were measured to carry; by default none.
struct SailorLinkScale {
  double reduction = 1;          // times the measured bandwidth, between replicas
  Duration message_overhead{0};  // beside the time on the wire, per message between stages
  int standing_ends = 1;         // of a message: times its wire time
};

// Hosts and devices of the plan. Each GPU sends a whole boundary tensor over its own way out of the
// node (the fit of one sender), at the bandwidth of that message's size; a ring between replicas
// sends shares of a stage's parameters. Sailor's files name no memory limit: there is none.
// Throws InputError where no bandwidth was measured for one sender or a size.
Cluster make_sailor_cluster(const SailorPlan& plan, const ModelProfile& profile,
                            const SailorLinks& links, const SailorLinkScale& scale = {});

}  // namespace frazil
