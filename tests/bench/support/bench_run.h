#pragma once
// The parts that the benchmarks of the executor share: some vision transformers, plans over them
// with equal stages for every synchronous schedule, and batches that are made before any clock
// starts.

#include <cstdint>
#include <string>
#include <vector>

#include "exec/config/run_config.h"
#include "exec/data/dataset.h"
#include "planner/plan/plan.h"

namespace frazil {

// A model of the benchmarks. "tiny" has 12 blocks of width 192 and a batch of 64, "wide" 8 blocks
// of width 384 and a batch of 32, both 65 tokens; "base" has the 86 million parameters of ViT-B/16,
// 5 tokens and a batch of 8; "vit-b16" is ViT-B/16 itself, 197 tokens and a batch of 64, and
// "bert-large" has the 24 blocks of width 1024 of BERT-large, 485 tokens and a batch of 16.
struct BenchModel {
  std::string name = "tiny";
  VitConfig config;
  int batch_size = 64;
};

// Finds a model by its name. Throws InputError for any other name.
BenchModel find_bench_model(const std::string& name);

// Returns SGD with momentum 0.9, learning rate 0.01, no weight decay, no clipping.
OptimizerConfig momentum_sgd();

// Gives all layers the same times at this micro-batch size, for callers that need a profile but not
// its times.
ModelProfile with_even_times(ModelProfile profile, int micro_batch_size);

struct BenchPlan {
  ScheduleKind schedule = ScheduleKind::kOneForwardOneBackward;
  // Devices of a pipeline; it has as many stages, times the chunks of the schedule.
  int devices = 1;
  // Replicas run beside each other on their own devices, with equal shares of the batch.
  int replicas = 1;
  int batch_size = 64;
  int micro_batches = 8;  // a divisor of the batch, a multiple of the pipelines
  ReductionMode reduction = ReductionMode::kExact;

  int stages() const;     // stages of a pipeline
  int pipelines() const;  // two per replica if the schedule runs both ways
};

// Makes a plan that splits the blocks evenly over the stages (block b L / n begins stage b of n);
// the embedding is with the first, the head with the last. Nothing is frozen. Schedules that decide
// by times are told that all layers take the same. Throws InfeasibleError if the schedule has no
// form of this shape.
Plan make_bench_plan(const ModelProfile& structure, const BenchPlan& shape);

// Makes `steps` batches of normally distributed images, each cut into its micro-batches.
std::vector<std::vector<Samples>> make_batches(const VitConfig& model, const BenchPlan& shape,
                                               int steps, std::uint64_t seed);

}  // namespace frazil
