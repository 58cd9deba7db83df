#pragma once
// Plans for any of the small models, made by a few numbers, and the bits that training under a plan
// gives.

#include <string>
#include <vector>

#include "exec/run/run.h"
#include "tests/exec/models/test_models.h"

namespace frazil {

struct PlanForm {
  ScheduleKind schedule = ScheduleKind::kOneForwardOneBackward;
  int devices = 1;  // of one replica
  int chunks = 1;
  int micro_batches = 4;
  std::vector<int> cuts = {};  // first layers of all stages but the first; empty: as even as can be
  int replicas = 1;            // side by side, each on devices of its own
  std::string mask = {};       // empty: the model's own
  bool recompute = false;      // every stage
  int shared_stage = -1;       // of the first replica: also on one more device, the last
  MessageOrder order = MessageOrder::kByTag;  // of the run, no part of the plan

  int all_devices() const { return devices * replicas + (shared_stage < 0 ? 0 : 1); }
};

std::string name_of(const PlanForm& form);

// Makes the lists of a schedule that decides by times from uneven times. Throws InfeasibleError
// where the schedule has no such form, or the model too few layers.
Plan make_plan(const TestModel& model, const PlanForm& form);

// Returns the structure of the model with some time for every part.
ModelProfile make_timed_structure(const ModelSpec& model);
// Makes a uniform cluster with a bandwidth, so that every SEND is a task of the simulator.
Cluster make_linked_cluster(int devices);

// These are the optimizers of the tests: AdamW with clipping, SGD with momentum.
OptimizerConfig clipped_adamw();
OptimizerConfig momentum_sgd();

// Takes two steps under one plan, one of the warm-up and one along the cosine, and returns
// Run::weight_hash. The second step lacks a sample, and of 8 micro-batches the last.
std::uint64_t train_two_steps(const TestModel& model, OptimizerConfig optimizer,
                              const PlanForm& form, const Measurement& measurement = {});

}  // namespace frazil
