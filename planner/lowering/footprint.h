#pragma once
// Logical bytes a stage occupies on a device (design page, "Memory"): all parameters of its
// layers; per active layer a gradient tree (held_gradient_sets x parameter bytes) and optimizer
// state; per micro-batch in flight the stash of every layer with a backward. A receive buffer for
// each boundary that a layer without a backward reads counts at that layer during its F; of other
// layers what arrives is part of their stash. A stage that recomputes keeps its inputs from F to R,
// and the whole stash from R on.

#include "planner/plan/activity.h"
#include "planner/plan/plan.h"
#include "profiles/model_profile.h"

namespace frazil {

struct StageFootprint {
  Bytes parameters;  // of layers that are updated times the weight versions kept
  Bytes gradients;   // of the exact tree over the micro-batches the device works on
  Bytes optimizer;
  Bytes stash_per_micro_batch;    // at the plan's micro-batch size, or of the device's slice of it
  Bytes stash_of_frozen;          // of it: of layers that have I and no W, so I ends it
  Bytes receive_per_micro_batch;  // incoming boundaries from other devices, at most
  Bytes
      input_per_micro_batch;  // of the stash: what the stage reads from outside, kept to recompute
};

// Gradient sets a device that has the layer holds of it at its worst moment before reductions: of
// the exact tree over the micro-batches it works on, or the running sum. Of a device that has it in
// several pipelines at most so many, for they take turns as their schedule wants.
int find_gradient_sets(const Plan& plan, LayerId layer, DeviceId device);

// Requires: the device is of the stage.
StageFootprint find_footprint(const Plan& plan, PipelineId pipeline, StageId stage, DeviceId device,
                              const ModelProfile& profile, const Activity& activity);

// Of the stage's first device.
StageFootprint find_footprint(const Plan& plan, PipelineId pipeline, StageId stage,
                              const ModelProfile& profile, const Activity& activity);

}  // namespace frazil
