#pragma once
// Counts the logical bytes that a stage occupies on a device: all parameters of its layers; per
// active layer a gradient tree (held_gradient_sets x parameter bytes) and optimizer state; per
// micro-batch in flight the stash (saved activations) of every layer with a backward. A boundary
// that a layer without a backward reads has a receive buffer, which counts at that layer during its
// F; what arrives for a layer with a backward is part of the layer's stash. A stage that recomputes
// (activation checkpointing) keeps its inputs from F to R, and the whole stash from R on.

#include <optional>
#include <span>
#include <vector>

#include "planner/plan/activity.h"
#include "planner/plan/plan.h"
#include "profiles/model_profile.h"

namespace frazil {

struct StageFootprint {
  Bytes parameters;  // of all layers; those of updated layers times the weight versions kept
  Bytes gradients;   // of the exact tree over the micro-batches that the device works on
  Bytes optimizer;
  // The stash at the plan's micro-batch size, or at the size of the device's slice.
  Bytes stash_per_micro_batch;
  // The part of the stash of layers that have I and no W, which I frees.
  Bytes stash_of_frozen;
  // The most that arrives from other devices for layers without a backward.
  Bytes receive_per_micro_batch;
  // The part of the stash that the stage reads from outside and keeps to recompute, if it
  // recomputes.
  Bytes input_per_micro_batch;
};

// Returns how many gradient sets of a layer a device holds at its worst moment before reductions:
// the sets of the exact tree over the micro-batches it works on, or 1, the running sum of mode
// fast. If the device holds the layer in several pipelines, this is an upper bound, for the
// schedule decides how the pipelines take turns.
int find_gradient_sets(const Plan& plan, LayerId layer, DeviceId device);
// Returns the same of all devices, by DeviceId; 0 of those that do not hold the layer.
std::vector<int> find_gradient_sets(const Plan& plan, LayerId layer);

// Returns the pipelines that have a stage on each device, by DeviceId.
std::vector<std::vector<int>> list_pipelines(const Plan& plan);

// Returns the footprint of a stage on one of its devices. `pipelines_on`: the pipelines that have a
// stage on that device; none: they are looked up. Requires: the device is of the stage.
StageFootprint find_footprint(const Plan& plan, PipelineId pipeline, StageId stage, DeviceId device,
                              const ModelProfile& profile, const Activity& activity,
                              std::optional<std::span<const int>> pipelines_on = std::nullopt);

// Returns the footprint of a stage on its first device.
StageFootprint find_footprint(const Plan& plan, PipelineId pipeline, StageId stage,
                              const ModelProfile& profile, const Activity& activity);

}  // namespace frazil
