#pragma once
// Finds the least work that the masks and the cache of a training leave to do, by the times of a
// profile.

#include <cstdint>

#include "exec/train/train_result.h"

namespace frazil {

// Work in seconds, summed over all devices.
struct LeastWork {
  double compute = 0;
  double fill = 0;
  double read = 0;
  double all() const { return compute + fill + read; }
  LeastWork over(double devices) const {
    return {compute / devices, fill / devices, read / devices};
  }
};

// The steps [first, end) of a phase.
struct StepRange {
  Step first = 0;
  Step end = 0;
};

StepRange steps_of(const TrainResult& result, std::size_t phase);

// Finds all work but reading: F, I, W and updates of each step as its phase's plan has them, and
// filling the cached prefix once per depth with `samples` training samples.
LeastWork find_work(const TrainResult& result, const ModelProfile& profile, const RunConfig& config,
                    std::int64_t samples);
// Returns the seconds in which one core copies all that was found in the cache, in records of the
// cache's size and random order, at a rate that the call measures.
double find_reading(const CacheReport& cache);

}  // namespace frazil
