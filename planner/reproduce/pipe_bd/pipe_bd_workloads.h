#pragma once
// Pipe-BD's workloads as models and plans that the simulator takes. A model is the teacher blocks
// T0 T1 ... and the students S0 S1 ... that are trained, all joined by detached edges. A student's
// forward, backward and update are one task. Costs that are not published take no time: links,
// all-reduces, and an update apart from the student's time. Loading is no part of a model: the host
// does it (planner/reproduce/pipe_bd/loaded_steps.h).

#include <vector>

#include "planner/plan/plan.h"
#include "planner/reproduce/pipe_bd/pipe_bd_published.h"
#include "profiles/cluster.h"
#include "profiles/model_profile.h"

namespace frazil {

// What a block holds. Where nothing is published, counts are placeholders of a byte.
struct BlockBytes {
  Bytes teacher;  // weights
  Bytes student;  // weights
  Bytes state;    // of the student's optimizer
  Bytes stash;    // saved by the student, per sample
  Bytes output;   // of the teacher, per sample
};

struct BlockwiseTimes {
  std::vector<int> batches;                    // ascending
  std::vector<std::vector<Duration>> teacher;  // by batch, then block
  std::vector<std::vector<Duration>> student;  // by batch, then block
  std::vector<BlockBytes> bytes = {};          // by block; empty: placeholders

  int blocks() const { return static_cast<int>(teacher.front().size()); }
};

// How a device comes by its batches. The loaders of all devices draw on the workers of their host.
struct Loader {
  Duration alone{0};          // what one loader takes for a full batch while no other loads
  std::int64_t rate = 1;      // what a loader draws alone
  std::int64_t capacity = 1;  // what all loaders of the host may draw together
  int ahead = 0;              // batches that a loader may have ready before a device asks
};

// Returns the times of the search on ImageNet, from the block means. The teacher's share of a block
// is its share of the whole epoch in the published breakdown, 4.53 s of 32.66 s.
BlockwiseTimes make_imagenet_times();
// Returns the loader of the search on ImageNet, of which nothing is published: a loader has all
// workers to itself where it is alone, and works ahead. Its time for a batch is fitted, on the
// speed-up of TR+DPU.
Loader make_imagenet_loader();
// Returns the times of the search on CIFAR-10, in an epoch of 100 steps. Pipe-BD's ranks of the
// breakdown have the blocks 0, 1, 2 and 3, 4 and 5, of which those of a rank take the half each. At
// a quarter of the batch, teachers and students take such shares of the full batch's times that
// data parallelism takes what the breakdown says; between, times are linear.
BlockwiseTimes make_cifar_times();
// Returns the loader of the search on CIFAR-10. The published loading is what devices wait for, so
// a loader begins when it is asked. One alone takes what rank 0 of Pipe-BD waits for; four with a
// quarter of the batch each, of which data parallelism waits for six, take what they can together.
Loader make_cifar_loader();
// Returns the plan of Pipe-BD's pipeline in the breakdown of an epoch.
HybridPlan make_cifar_pipeline();
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
