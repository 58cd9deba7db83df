#pragma once
// Derives from a plan where the layers of a model lie: the stage of each layer, what crosses
// between stages, which devices hold and update a layer and for which micro-batches, and which
// layers are reduced together. Lowering, schedules, checks and the executor all read this one
// derivation; a new axis that shares a stage among devices is added here. A search has no plan yet:
// planner/bounds/reduction_tail.cpp finds owners from a proposal, and
// tests/planner/search/search_joint_test.cpp compares the steps that follow.

#include <cstddef>
#include <vector>

#include "planner/plan/activity.h"
#include "planner/plan/plan.h"
#include "profiles/model_profile.h"
#include "sim/gradient_tree_shape.h"

namespace frazil {

// All edges from one stage to another stage of a pipeline, but those to idle layers, by position in
// ModelProfile::edges.
struct StageCrossing {
  StageId from;
  StageId to;
  std::vector<std::size_t> edges;     // ascending
  std::vector<std::size_t> carrying;  // the `edges` whose gradient comes back
};

struct PipelineTopology {
  std::vector<StageId> stage_of;         // by layer
  std::vector<StageCrossing> crossings;  // by (from, to)
  // The crossings that enter and that leave each stage, as positions in `crossings`.
  std::vector<std::vector<std::size_t>> incoming;
  std::vector<std::vector<std::size_t>> outgoing;
};

// A device of a stage that holds a layer.
struct LayerHolder {
  PipelineId pipeline;
  StageId stage;
  DeviceId device;
  std::vector<MicroBatches> micro_batches;  // if none, the device still joins reductions
  friend bool operator==(const LayerHolder&, const LayerHolder&) = default;
};

// A device that holds a layer, in one pipeline or several, and the micro-batches whose gradients it
// computes.
struct LayerOwner {
  DeviceId device;
  std::vector<TreeNode> micro_batches;  // intervals, ascending
  friend bool operator==(const LayerOwner&, const LayerOwner&) = default;
};

struct PlanTopology {
  std::vector<PipelineTopology> pipelines;
  std::vector<std::vector<LayerOwner>> owners;  // by layer; by ascending device
  std::vector<std::vector<LayerId>> groups;     // find_reduced_layers()
};

// Returns the topology of a whole plan. This function and all that follow require that the stages
// of each pipeline hold every layer once.
PlanTopology find_topology(const Plan& plan, const ModelProfile& structure,
                           const Activity& activity);

// The next functions return single parts of the topology.
PipelineTopology find_topology(const Pipeline& pipeline, const ModelProfile& structure,
                               const Activity& activity);
std::vector<StageId> find_stages(const Pipeline& pipeline, std::size_t layers);  // by layer
StageId find_stage(const Pipeline& pipeline, LayerId layer);
// Returns the holders of each layer, by pipeline, then in the order of the stage's devices.
std::vector<std::vector<LayerHolder>> find_holders(const Plan& plan, std::size_t layers);
// Merges the holders of one layer by device; the owners come by ascending device.
std::vector<LayerOwner> find_owners(const std::vector<LayerHolder>& holders);
// Returns for each layer the devices that hold it in any pipeline, ascending.
std::vector<std::vector<DeviceId>> find_holding_devices(const Plan& plan, std::size_t layers);
// Returns the layers that are updated and have several owners, grouped so that one collective
// serves a group: neighbours among the updated layers that have equal holders. Groups and layers
// ascend.
std::vector<std::vector<LayerId>> find_reduced_layers(
    const std::vector<std::vector<LayerHolder>>& holders, const Activity& activity);

// Returns the layers, ascending, that use a tied parameter and are updated. Each of them sums a
// gradient of its own, and the sums are added in this order.
std::vector<LayerId> find_updated_uses(const TiedParameter& tied, const Activity& activity);

}  // namespace frazil
