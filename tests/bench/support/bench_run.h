#pragma once
// What the benchmarks of the executor share: some vision transformers, plans over them with equal
// stages for every schedule that flushes, and batches made before any clock starts.

#include <cstdint>
#include <string>
#include <vector>

#include "exec/config/run_config.h"
#include "exec/data/dataset.h"
#include "planner/plan/plan.h"

namespace frazil {

// "tiny" is 12 blocks of 192 with a batch of 64, "wide" 8 of 384 with one of 32, 65 tokens each;
// "base" has the 86 million parameters of ViT-B/16, 5 tokens and a batch of 8.
struct BenchModel {
  std::string name = "tiny";
  VitConfig config;
  int batch_size = 64;
};

// Throws InputError for any other name.
BenchModel find_bench_model(const std::string& name);

// Momentum 0.9, learning rate 0.01, no weight decay, no clipping.
OptimizerConfig momentum_sgd();

// All layers take the same at this micro-batch size: for what asks for times and needs none.
ModelProfile with_even_times(ModelProfile profile, int micro_batch_size);

struct BenchPlan {
  ScheduleKind schedule = ScheduleKind::kOneForwardOneBackward;
  int devices = 1;   // of a pipeline; its stages are as many, times the chunks of the schedule
  int replicas = 1;  // beside each other, on devices of their own, with equal shares
  int batch_size = 64;
  int micro_batches = 8;  // must divide the batch, and be divided by the pipelines
  ReductionMode reduction = ReductionMode::kExact;

  int stages() const;     // of a pipeline
  int pipelines() const;  // two for each replica where a schedule runs both ways
};

// Blocks split evenly over the stages (block b L / n begins stage b of n); the embedding is with
// the first, the head with the last. Nothing frozen. Schedules that decide by times are told that
// all layers take the same. Throws InfeasibleError where a schedule has no such form.
Plan make_bench_plan(const ModelProfile& structure, const BenchPlan& shape);

// `steps` batches of normal images, each cut into its micro-batches.
std::vector<std::vector<Samples>> make_batches(const VitConfig& model, const BenchPlan& shape,
                                               int steps, std::uint64_t seed);

}  // namespace frazil
