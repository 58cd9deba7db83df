#pragma once
// Pipe-BD's workloads as models and plans that the simulator takes. A model is a load layer,
// teacher blocks T0 T1 ... and the students S0 S1 ... that are trained, all joined by detached
// edges. A student's forward, backward and update are one task. Costs that are not published take
// no time: links, all-reduces, and an update apart from the student's time. Byte counts are
// placeholders.

#include <vector>

#include "planner/plan/plan.h"
#include "planner/reproduce/pipe_bd_published.h"
#include "profiles/cluster.h"
#include "profiles/model_profile.h"

namespace frazil {

struct BlockwiseTimes {
  std::vector<int> batches;                    // ascending
  std::vector<Duration> load;                  // by batch
  std::vector<std::vector<Duration>> teacher;  // by batch, then block
  std::vector<std::vector<Duration>> student;  // by batch, then block

  int blocks() const { return static_cast<int>(teacher.front().size()); }
};

// Returns the times of the search on ImageNet, from the block means. The teacher's share of a block
// is its share of the whole epoch in the published breakdown, 4.53 s of 32.66 s. Loading has its
// share of the same epoch: 0.94 s at the full batch, a sixth of data parallel's 2.44 s at a quarter
// of the batch, and linear between.
BlockwiseTimes make_imagenet_times();
// Returns the times of the search on CIFAR-10, with each rank of the breakdown as a block and an
// epoch of 100 steps.
BlockwiseTimes make_cifar_times();
// Returns the times of the breakdown's data parallel epoch on a device, as one block in an epoch of
// 100 steps.
BlockwiseTimes make_cifar_data_parallel_times();
// Returns four stages of 20 ms each, which +-25 % turn into 15 to 25 ms.
BlockwiseTimes make_balanced_times();

// Makes the model of a pipeline: all teacher blocks and students.
ModelProfile make_pipeline_model(const BlockwiseTimes& times);
// Makes the model for training one student alone: the teacher up to the student's block.
ModelProfile make_student_model(const BlockwiseTimes& times, int block);

struct Workload {
  ModelProfile model;
  Cluster cluster;
  Plan plan;
};

// Makes the pipeline with teacher relaying whose stages have the groups and cuts of `hybrid`.
Workload make_relayed(const BlockwiseTimes& times, const HybridPlan& hybrid);
// Makes the training of one student on `devices` devices that share each batch.
Workload make_single_student(const BlockwiseTimes& times, int block, int devices);

// Returns the costs that follow from the published block means, without communication.
HybridCosts make_published_costs();

}  // namespace frazil
