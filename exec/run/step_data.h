#pragma once
// What one step works on, and of it what the F of a stage is run with: the samples of its
// micro-batch or of its slice, the scale of its losses, its randomness, what it is called in a
// cache.

#include <cstdint>
#include <map>
#include <span>
#include <tuple>
#include <vector>

#include "exec/program/step_program.h"
#include "exec/run/stage_runner.h"
#include "exec/tensors/samples.h"

namespace frazil {

class PrefixCache;

// Equal for all devices.
struct StepInput {
  Step step = 0;
  std::uint64_t seed = 0;
  double learning_rate = 0;
  const std::vector<Samples>* micro_batches = nullptr;    // by global micro-batch
  int samples = 0;                                        // in all of them
  std::vector<double> rate_factors = {};                  // of the blocks' rates; empty: all 1
  PrefixCache* cache = nullptr;                           // none: frozen layers run
  const std::vector<std::int64_t>* sample_ids = nullptr;  // one after another, where there is one
};

class StepData {
 public:
  // The program must outlive it.
  explicit StepData(const StepProgram& program) : program_(program) {}

  void begin(const StepInput& input);

  // Requires an F of one micro-batch. What it points at stays until the next step.
  StageRunner::Data of(const Action& forward);
  // Of the samples of an F that may begin behind the cached prefix; else none.
  std::span<const std::int64_t> cached_ids(const Action& forward) const;
  // Keeps what the cached prefix has put out in it, if it ran.
  void keep_features(const Action& forward, const Tensors& features);
  // What its losses count in the mean of the step: with weight versions an update has fewer
  // samples.
  double share_of_step(const Action& forward) const;

 private:
  const Samples& samples_of(const Action& forward);
  int count_samples(const Action& forward) const;

  const StepProgram& program_;
  StepInput input_;
  std::map<std::tuple<PipelineId, StageId, MicroBatchId>, Samples> slices_;
};

}  // namespace frazil
