#pragma once
// PrefixCompletion completes the frozen prefix of a micro-batch of which the cache holds some rows.
// The missing rows run the prefix's layers in a batch of their own, in eval mode and without
// gradients as in the whole micro-batch; then all rows are joined in their order. If no smaller
// batch gives the bits of the whole (exec/cache/batch_sizes.h), the whole micro-batch runs.

#include <cstdint>
#include <span>
#include <vector>

#include "exec/cache/prefix_cache.h"
#include "exec/run/stages/stage_runner.h"

namespace frazil {

class PrefixCompletion {
 public:
  // Completes layers [0, activity.cached), which `state` must hold when find() is called. The
  // references must outlive this object.
  explicit PrefixCompletion(const StageContext& context);

  // Returns what a forward of `data` begins with; `ids` are the numbers of its samples. That is all
  // rows at the end of the prefix or of a part of the prefix, or nothing. The rows that had to run
  // are kept in the cache.
  PrefixFeatures find(PrefixCache& cache, std::span<const std::int64_t> ids,
                      MicroBatchId micro_batch, const StageRunner::Data& data);

 private:
  // Returns what the prefix puts out for these rows, which run in a batch of `size`.
  Tensors compute(const PrefixRows& part, std::int64_t size, MicroBatchId micro_batch,
                  const StageRunner::Data& data);

  // Waits for the device and returns what it has made, on the host.
  Tensors to_host(const Tensors& tensors) const;

  int depth_;
  const ComputeDevice& compute_;
  StageRunner runner_;
};

}  // namespace frazil
