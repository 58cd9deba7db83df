#pragma once
// Makes a plan with PipeDream's optimizer (planner/named/pipedream.h). The operators are layers,
// with forward and backward of a micro-batch, the largest tensor that leaves the layer along one
// edge, and the layer's parameters. As PipeDream's optimizer does, it leaves out the layers named
// __getitem__ that no layer reads: each would be one more place to cut beside every later one. They
// go to the stage of the last layer that they read. The machines are those of
// planner/partition/replica_levels.h; the devices of a stage take micro-batches in turn (1F1B-RR).
// PipeDream's weight versions are left out: a step is synchronous, in the order of 1f1b.

#include "planner/plan/plan.h"
#include "profiles/setting.h"

namespace frazil {

struct PipeDreamPlan {
  Plan plan;
  Duration bottleneck{0};  // what PipeDream minimizes: the time between two micro-batches
  int left_out = 0;        // layers that its optimizer leaves out
};

// Throws InfeasibleError where the model branches too much (kMostStates).
PipeDreamPlan make_pipedream_plan(Setting setting, const FreezeMask& mask, int batch_size,
                                  int micro_batch_size);

}  // namespace frazil
