#pragma once
// Pipe-BD's plans (Jang et al. 2023; planner/named/hybrid_distribution.h) for any model. What
// it distributes are units: where several layers carry a loss, as in blockwise distillation, each
// ends a unit (a block of the teacher and the student's block that it teaches); else the model's
// blocks are units. A batch is one micro-batch; the devices of a stage share it by samples.
//
// Known: teacher relaying. The layers of a stage that have no backward (the teacher's) run first
// and their output leaves at once, then the others train; so they are a pipeline stage of their own
// on the same devices, where there are several losses. Chosen: times come from the profile at the
// batch floor(B/g); the all-reduce is a ring over the first g devices and the relay goes over the
// link from device 0 to 1, as the code measures it.

#include "planner/named/hybrid_distribution.h"
#include "planner/plan/plan.h"
#include "profiles/cluster.h"
#include "profiles/model_profile.h"

namespace frazil {

// First layer of each unit, and one past the last layer of the model. Layers behind the last loss
// belong to its unit.
std::vector<int> find_units(const ModelProfile& profile);

// Times of units by group size, without a memory limit. Requires: batch_size >= devices.
HybridCosts measure_hybrid(const ModelProfile& profile, const Cluster& cluster,
                           const FreezeMask& mask, int batch_size);
// The same with the joint footprint of a stage's blocks (states, and stash of a device's share of
// the batch), which must fit the smallest device.
HybridCosts measure_hybrid_with_memory(const ModelProfile& profile, const Cluster& cluster,
                                       const FreezeMask& mask, int batch_size);

// A distribution of units over the first devices of a cluster as a plan.
Plan make_hybrid_plan(const HybridPlan& hybrid, const ModelProfile& profile, const FreezeMask& mask,
                      int batch_size);

}  // namespace frazil
