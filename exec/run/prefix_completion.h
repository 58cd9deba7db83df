#pragma once
// The frozen prefix of a micro-batch of which the cache holds some rows: those that are missing run
// its layers in a batch of their own, in eval mode and without gradients as they do in the whole,
// and all come together in their order. Where no smaller batch gives the bits of the whole
// (exec/cache/batch_sizes.h), the whole runs.

#include <cstdint>
#include <span>
#include <vector>

#include "exec/cache/prefix_cache.h"
#include "exec/run/stage_runner.h"

namespace frazil {

class PrefixCompletion {
 public:
  // Of layers [0, activity.cached), which `state` holds where `find` is asked. References must
  // outlive it.
  explicit PrefixCompletion(const StageContext& context);

  // What a forward with this data, of the samples of these numbers, begins with: all rows of the
  // prefix or of a part of it, or none. What ran for it is kept in the cache.
  PrefixFeatures find(PrefixCache& cache, std::span<const std::int64_t> ids,
                      MicroBatchId micro_batch, const StageRunner::Data& data);

 private:
  // What the prefix puts out for these rows, in a batch of `size`.
  Tensors compute(const PrefixRows& part, std::int64_t size, MicroBatchId micro_batch,
                  const StageRunner::Data& data);

  int depth_;
  StageRunner runner_;
};

}  // namespace frazil
