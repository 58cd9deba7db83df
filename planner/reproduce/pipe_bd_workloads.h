#pragma once
// Pipe-BD's workloads as models and plans that the simulator takes. A model is a load layer,
// teacher blocks T0 T1 ... and the students S that are trained, each over detached edges; a
// student's time is one task. What is not published is set so that it takes no time: links and
// all-reduces, and the update apart from the student's time; bytes are placeholders.

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
  std::vector<std::vector<Duration>> student;

  int blocks() const { return static_cast<int>(teacher.front().size()); }
};

// The search on ImageNet: block means, of which a part is the teacher's as over the whole epoch of
// the published breakdown, 4.53 s of 32.66 s. So is loading, 0.94 s for the full batch and, for a
// quarter of it, a sixth of data parallel's 2.44 s; linear between.
BlockwiseTimes make_imagenet_times();
// The search on CIFAR-10: a rank of the breakdown is a block, an epoch has 100 steps.
BlockwiseTimes make_cifar_times();
// One pass of the breakdown's data parallel epoch on a device, likewise.
BlockwiseTimes make_cifar_data_parallel_times();
// Four stages of 20 ms: vary each by a quarter for 15 to 25 ms.
BlockwiseTimes make_balanced_times();

// All teacher blocks and students of a pipeline.
ModelProfile make_pipeline_model(const BlockwiseTimes& times);
// Training one student alone: the teacher up to its block.
ModelProfile make_student_model(const BlockwiseTimes& times, int block);

struct Workload {
  ModelProfile model;
  Cluster cluster;
  Plan plan;
};

// Stages of the pipeline by `groups` and `cuts`.
Workload make_relayed(const BlockwiseTimes& times, const HybridPlan& hybrid);
// A student on so many devices that share each batch.
Workload make_single_student(const BlockwiseTimes& times, int block, int devices);

// The costs of the published block means, without communication.
HybridCosts make_published_costs();

}  // namespace frazil
