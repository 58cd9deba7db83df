#pragma once
// Where a plan puts the layers of a model: the stage of each layer, what crosses between stages,
// who holds and updates a layer and for which micro-batches, which layers are reduced together.
// Lowering, schedules, checks, searches and the executor read this one derivation; a new axis that
// shares a stage among devices is taught here.

#include <cstddef>
#include <vector>

#include "planner/plan/activity.h"
#include "planner/plan/plan.h"
#include "profiles/model_profile.h"
#include "sim/gradient_tree_shape.h"

namespace frazil {

// All edges from one stage to another of the same pipeline, by position in ModelProfile::edges.
struct StageCrossing {
  StageId from;
  StageId to;
  std::vector<std::size_t> edges;     // ascending
  std::vector<std::size_t> carrying;  // those of `edges` whose gradient comes back
};

struct PipelineTopology {
  std::vector<StageId> stage_of;         // by layer
  std::vector<StageCrossing> crossings;  // by (from, to)
  // By stage: the crossings that enter and that leave it, by position in `crossings`.
  std::vector<std::vector<std::size_t>> incoming;
  std::vector<std::vector<std::size_t>> outgoing;
};

// A device of a stage that holds a layer.
struct LayerHolder {
  PipelineId pipeline;
  StageId stage;
  DeviceId device;
  std::vector<MicroBatches> micro_batches;  // perhaps none: it joins reductions all the same
  friend bool operator==(const LayerHolder&, const LayerHolder&) = default;
};

// A device that holds a layer, in whichever pipelines, and the micro-batches whose gradients it
// makes.
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

// Requires of all that follows: the stages of each pipeline hold every layer once.
PlanTopology find_topology(const Plan& plan, const ModelProfile& structure,
                           const Activity& activity);

// The parts of it, for those that need no more.
PipelineTopology find_topology(const Pipeline& pipeline, const ModelProfile& structure,
                               const Activity& activity);
std::vector<StageId> find_stages(const Pipeline& pipeline, std::size_t layers);  // by layer
StageId find_stage(const Pipeline& pipeline, LayerId layer);
// By layer; by pipeline, then in the order of the stage's devices.
std::vector<std::vector<LayerHolder>> find_holders(const Plan& plan, std::size_t layers);
std::vector<LayerOwner> find_owners(const std::vector<LayerHolder>& holders);
// By layer, ascending: the devices that hold it in whichever pipeline.
std::vector<std::vector<DeviceId>> find_holding_devices(const Plan& plan, std::size_t layers);
// Layers that are updated and have several owners, grouped so that one collective serves a group:
// neighbours among the updated layers that have the same holders. Ascending.
std::vector<std::vector<LayerId>> find_reduced_layers(
    const std::vector<std::vector<LayerHolder>>& holders, const Activity& activity);

// The layers, ascending, that use a tied parameter and are updated: each sums a gradient of its
// own, and the sums are added in this order.
std::vector<LayerId> find_updated_uses(const TiedParameter& tied, const Activity& activity);

}  // namespace frazil
