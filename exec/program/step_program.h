#pragma once
// What all devices need to know to run one step of a plan, made once per plan: the completed
// schedule, what each layer computes, who owns which layers. Short last batches have a program of
// their own.

#include <vector>

#include "exec/models/model.h"
#include "exec/state/weight_versions.h"
#include "planner/actions/message_order.h"
#include "planner/actions/schedule.h"
#include "planner/plan/activity.h"
#include "planner/plan/plan.h"
#include "planner/plan/plan_topology.h"

namespace frazil {

// A tied parameter that trains: the layers that use it, and all devices that hold one of them.
struct TiedUses {
  std::vector<LayerId> layers;
  std::vector<DeviceId> devices;
};

struct StepProgram {
  Plan plan;
  Activity activity;
  Schedule schedule;
  PlanTopology topology;
  std::vector<TiedUses> tied;
  std::vector<StageVersions> versions;  // by stage, where the plan has weight versions

  const Stage& stage(PipelineId pipeline, StageId stage) const;
  // The device that works on a micro-batch of a stage, or on a slice of it.
  DeviceId device_of(PipelineId pipeline, StageId stage, MicroBatchId micro_batch,
                     std::optional<std::int32_t> slice = std::nullopt) const;
  // Whether some backward of the stage comes as I and W.
  bool splits_backward(PipelineId pipeline, StageId stage) const;
};

// Throws InfeasibleError naming what the executor cannot run (a memory policy offload,
// lists that wait for each other, ...).
StepProgram make_program(const Plan& plan, const ModelProfile& structure, int devices, bool clip,
                         MessageOrder order = MessageOrder::kByTag);

// The plan of a step of `samples` < batch_size: micro-batches ceil(samples / size); owners keep
// their indices below that.
Plan shorten(const Plan& plan, int samples);
// The same stages with a schedule that takes any number of micro-batches: 1f1b, or gpipe where a
// pipeline returns to a device; slices of micro-batches too small for them become whole ones (axis
// data). For a short batch that the plan itself is illegal for.
Plan fall_back(const Plan& plan);

}  // namespace frazil
