#pragma once
// Which gradients are added across devices: layers that are updated and have several owners (in
// several pipelines, or on the devices of one stage), grouped so that one collective serves
// neighbours with the same owners; and, after them, those of parameters tied across devices.

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
  std::vector<std::vector<TreeNode>> nodes;  // by device of the collective: what it ships in exact

  friend bool operator==(const ReductionGroup&, const ReductionGroup&) = default;
};

// First layers first: the order in which every device enters its collectives. Mode exact asks for
// the exact tree, mode fast for a ring. Layers whose owners all lie on one device need no
// collective.
std::vector<ReductionGroup> find_reduction_groups(const Plan& plan, const ModelProfile& profile,
                                                  const Activity& activity);

// The same reductions as a last backward yields them: last layers first, each group cut into
// buckets that are full once they hold `bucket` bytes; the first layers of a group may leave a
// smaller one.
std::vector<ReductionGroup> cut_into_buckets(const std::vector<ReductionGroup>& groups,
                                             const ModelProfile& profile, Bytes bucket);

}  // namespace frazil
