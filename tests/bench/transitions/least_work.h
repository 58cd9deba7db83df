#pragma once
// The work that the masks and the cache of a training leave to do, by the times of a profile.

#include <cstdint>

#include "exec/train/train_result.h"

namespace frazil {

// Seconds of all devices together.
struct LeastWork {
  double compute = 0;
  double fill = 0;
  double read = 0;
  double all() const { return compute + fill + read; }
  LeastWork over(double devices) const {
    return {compute / devices, fill / devices, read / devices};
  }
};

// Of a phase.
struct StepRange {
  Step first = 0;
  Step end = 0;
};

StepRange steps_of(const TrainResult& result, std::size_t phase);

// All but reading: F, I, W and updates of each step as its phase's plan has them, and the cached
// prefix once per depth, over `samples` training samples.
LeastWork find_work(const TrainResult& result, const ModelProfile& profile, const RunConfig& config,
                    std::int64_t samples);
// Seconds in which one core copies what was found in the cache, in records of that size and random
// order; measured now.
double find_reading(const CacheReport& cache);

}  // namespace frazil
