#pragma once
// What all devices need to know to run one step of a plan, made once per plan: the completed
// schedule, what each layer computes, who owns which layers. Short last batches have a program of
// their own.

#include <vector>

#include "exec/vit.h"
#include "exec/weight_versions.h"
#include "planner/activity.h"
#include "planner/plan.h"
#include "planner/schedule.h"
#include "sim/gradient_tree_shape.h"

namespace frazil {

// One holder of a layer and the micro-batches whose gradients it makes.
struct LayerOwner {
  DeviceId device;
  std::vector<TreeNode> micro_batches;  // intervals, ascending
  friend bool operator==(const LayerOwner&, const LayerOwner&) = default;
};

struct StepProgram {
  Plan plan;
  Activity activity;
  Schedule schedule;
  std::vector<std::vector<LayerOwner>> owners;  // by layer; by ascending device
  std::vector<StageVersions> versions;          // by stage, where the plan has weight versions

  DeviceId device_of(PipelineId pipeline, StageId stage) const;
  // Layers [first, last] of a stage.
  LayerRange layers_of(PipelineId pipeline, StageId stage) const;
  // Whether some backward of the stage comes as I and W.
  bool splits_backward(PipelineId pipeline, StageId stage) const;
  bool recomputes(PipelineId pipeline, StageId stage) const;
};

// The structure of a model as a profile without costs: what activity and validation need.
ModelProfile make_structure(const ModelSpec& model, int optimizer_bytes_per_parameter_byte);

// Throws InfeasibleError naming what the executor cannot run (stages that are not one run of
// layers, other model shapes than a chain, mode fast, a frozen-prefix cache, ...).
StepProgram make_program(const Plan& plan, const ModelProfile& structure, int devices, bool clip);

// The plan of a step of `samples` < batch_size: micro-batches ceil(samples / size); owners keep
// their indices below that.
Plan shorten(const Plan& plan, int samples);
// The same stages with a schedule that takes any number of micro-batches: 1f1b, or gpipe where a
// pipeline returns to a device. For a short batch that the plan's own schedule is illegal for.
Plan fall_back(const Plan& plan);

}  // namespace frazil
