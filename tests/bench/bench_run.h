#pragma once
// What the benchmarks of the executor share: plans of one pipeline over a vision transformer, and
// batches made before any clock starts.

#include <cstdint>
#include <vector>

#include "exec/run.h"

namespace frazil {

struct BenchPlan {
  ScheduleKind schedule = ScheduleKind::kOneForwardOneBackward;
  int stages = 1;
  int batch_size = 64;
  int micro_batches = 8;  // must divide the batch
};

// Blocks split evenly over the stages; the embedding is with the first, the head with the last.
// Nothing frozen. Stage i is on device i.
Plan make_bench_plan(const ModelSpec& model, const ModelProfile& structure, const BenchPlan& shape);

// `steps` batches of normal images, each cut into its micro-batches.
std::vector<std::vector<Samples>> make_batches(const VitConfig& model, const BenchPlan& shape,
                                               int steps, std::uint64_t seed);

}  // namespace frazil
