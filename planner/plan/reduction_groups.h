#pragma once
// Finds the gradients that are added across devices. These are the gradients of layers that are
// updated and have several owners (in several pipelines, or on the devices of one stage), grouped
// so that one collective serves neighbours with the same owners. The sums of parameters tied across
// devices follow after all groups (planner/plan/tied_exchanges.h).

#include <vector>

#include "planner/plan/activity.h"
#include "planner/plan/plan_topology.h"
#include "profiles/model_profile.h"
#include "sim/gradient_tree_shape.h"
#include "sim/work.h"

namespace frazil {

struct ReductionGroup {
  std::vector<LayerId> layers;      // ascending; all are updated
  std::vector<LayerHolder> owners;  // by pipeline, then in the order of the stage's devices
  Collective collective;            // devices ascending; `owned` by the plan's micro-batches
  std::vector<std::vector<TreeNode>> nodes;  // by device of the collective: shipped in mode exact

  friend bool operator==(const ReductionGroup&, const ReductionGroup&) = default;
};

// Returns the groups, first layers first; every device enters its collectives in this order. Mode
// exact asks for the exact tree, mode fast for a ring. Layers whose owners all lie on one device
// need no collective.
std::vector<ReductionGroup> find_reduction_groups(const Plan& plan, const ModelProfile& profile,
                                                  const Activity& activity);

// Cuts the groups into buckets in the order in which a last backward yields gradients, last layers
// first. A bucket is full once it holds `bucket` bytes; the first layers of a group may leave a
// smaller bucket.
std::vector<ReductionGroup> cut_into_buckets(const std::vector<ReductionGroup>& groups,
                                             const ModelProfile& profile, Bytes bucket);

}  // namespace frazil
