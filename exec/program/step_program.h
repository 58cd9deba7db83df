#pragma once
// A step program is what all devices need to know to run one step of a plan: the completed
// schedule, what each layer computes, and which devices own which layers. It is made once per plan;
// short last batches have a program of their own.

#include <vector>

#include "exec/models/model.h"
#include "exec/state/weight_versions.h"
#include "planner/actions/message_order.h"
#include "planner/actions/schedule.h"
#include "planner/plan/activity.h"
#include "planner/plan/plan.h"
#include "planner/plan/plan_topology.h"

namespace frazil {

// A tied parameter that trains: the layers that use it, and all devices that hold one of these
// layers.
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
  std::vector<StageVersions> versions;  // by stage; empty without weight versions

  const Stage& stage(PipelineId pipeline, StageId stage) const;
  // Returns the device that works on a micro-batch of a stage, or on a slice of that micro-batch.
  DeviceId device_of(PipelineId pipeline, StageId stage, MicroBatchId micro_batch,
                     std::optional<std::int32_t> slice = std::nullopt) const;
  // True if some backward of the stage comes as I and W.
  bool splits_backward(PipelineId pipeline, StageId stage) const;
};

// Makes the program of a plan, with the messages of clipping if `clip`. Throws InfeasibleError
// naming what the executor cannot run (a memory policy offload, lists that wait for each other,
// ...).
StepProgram make_program(const Plan& plan, const ModelProfile& structure, int devices, bool clip,
                         MessageOrder order = MessageOrder::kByTag);

// Returns the plan of a step of `samples` < batch_size. It has ceil(samples / micro-batch size)
// micro-batches; owners keep the indices that are below that.
Plan shorten(const Plan& plan, int samples);
// Returns a plan with the same stages and a schedule that takes any number of micro-batches, for a
// short batch that the plan itself is illegal for: 1f1b, or gpipe if a pipeline returns to a
// device. A stage whose micro-batches are too small for its slices gets whole ones (axis data).
Plan fall_back(const Plan& plan);

}  // namespace frazil
