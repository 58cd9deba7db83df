#pragma once
// Pipe-BD's plans (Jang et al. 2023; planner/partition/hybrid_distribution.h) for any model.
// Pipe-BD distributes units. Where several layers carry a loss, as in blockwise distillation, each
// such layer ends a unit (a block of the teacher and the student's block that it teaches); else the
// model's blocks are the units. A batch is one micro-batch, which the devices of a stage share by
// samples.
//
// Known from the paper is teacher relaying: the layers of a stage that have no backward (the
// teacher's) run first and send their output at once; then the layers that have one train. So where
// there are several losses, the layers without a backward are a pipeline stage of their own on the
// same devices. Known too is the decoupled update: a device begins the next step as soon as its own
// update is done.
//
// Chosen here: devices are at most kDecoupledSteps (planner/plan/step_window.h) steps ahead. Times
// come from the profile at floor(batch / g) samples for g devices. The all-reduce is a ring over
// the first g devices. The relay goes over the link from device 0 to device 1, on which Pipe-BD's
// code measures it.

#include "planner/partition/hybrid_distribution.h"
#include "planner/plan/plan.h"
#include "profiles/model_profile.h"
#include "profiles/setting.h"

namespace frazil {

// Returns the first layer of each unit, and then one past the last layer of the model. Where losses
// end the units, layers behind the last loss belong to the last unit.
std::vector<int> find_units(const ModelProfile& profile);

// Returns the times of units by group size, without a memory limit. Requires: a sample for each
// device.
HybridCosts measure_hybrid(Setting setting, const FreezeMask& mask, int batch_size);
// Returns the costs of measure_hybrid with a memory limit: the states of a stage's units and the
// stash (saved activations) of a device's share of the batch, rounded up, must fit the device with
// the least capacity.
HybridCosts measure_hybrid_with_memory(Setting setting, const FreezeMask& mask, int batch_size);

// Makes a plan of a distribution of units over the first devices of a cluster.
Plan make_hybrid_plan(const HybridPlan& hybrid, const ModelProfile& profile, const FreezeMask& mask,
                      int batch_size);

}  // namespace frazil
