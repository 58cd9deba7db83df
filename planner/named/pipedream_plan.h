#pragma once
// A plan from PipeDream's optimizer (planner/named/pipedream.h). Operators are layers: forward and
// backward of a micro-batch, the largest boundary out of a layer, its parameters. Hosts with
// equally many devices, numbered host by host, are two levels of machines, with the bandwidths of
// the first link within a host and of the first between two; else there is one level, with the
// bandwidth from device 0 to 1. The devices of a stage take micro-batches in turn (1F1B-RR), and so
// that a micro-batch stays on a host through the stages of one pipeline within it. Its weight
// versions are left out: a step is synchronous, in the order of 1f1b.

#include "planner/plan/plan.h"
#include "profiles/cluster.h"
#include "profiles/model_profile.h"

namespace frazil {

// Throws InfeasibleError where the model branches too much.
Plan make_pipedream_plan(const ModelProfile& profile, const Cluster& cluster,
                         const FreezeMask& mask, int batch_size, int micro_batch_size);

}  // namespace frazil
