#pragma once
// StepData is what one step works on. It tells what the F of a stage is run with: the samples of
// its micro-batch or slice, the scale of its losses, the key of its randomness, and the numbers of
// its samples in a cache.

#include <cstdint>
#include <map>
#include <span>
#include <tuple>
#include <vector>

#include "exec/models/model.h"
#include "exec/program/step_program.h"
#include "exec/run/stages/stage_runner.h"
#include "exec/tensors/samples.h"

namespace frazil {

class PrefixCache;

// How many updates each layer of a device has had since a window of steps began
// (planner/plan/step_window.h).
using UpdateCounts = std::map<LayerId, int>;

// The input of a step, equal for all devices but for `updates`.
struct StepInput {
  Step step = 0;
  std::uint64_t seed = 0;
  double learning_rate = 0;
  const std::vector<Samples>* micro_batches = nullptr;  // by global micro-batch
  int samples = 0;                                      // in all micro-batches
  std::vector<double> rate_factors = {};  // of the blocks' learning rates; empty: all 1
  PrefixCache* cache = nullptr;           // none: frozen layers run
  // The cache numbers of all samples, one after another; read if there is a cache.
  const std::vector<std::int64_t>* sample_ids = nullptr;
  // The device's counts, if its reads of weights are told though the plan has no weight versions.
  // They outlive the step, and the executor counts on. `steps_before` counts the steps that the
  // device has done in the window.
  UpdateCounts* updates = nullptr;
  int steps_before = 0;
};

class StepData {
 public:
  // Both must outlive this object.
  StepData(const StepProgram& program, const ModelSpec& model) : program_(program), model_(model) {}

  void begin(const StepInput& input);

  // Returns what an F is run with. Requires: an F of one micro-batch. The samples that it points at
  // stay until the next step.
  StageRunner::Data of(const Action& forward);
  // Returns the numbers of the samples of an F that may begin behind the cached prefix; none for
  // any other F.
  std::span<const std::int64_t> cached_ids(const Action& forward) const;
  // Keeps in the cache what the cached prefix has put out in an F, if the prefix ran.
  void keep_features(const Action& forward, const Tensors& features);
  // Returns what the loss of a layer in an F counts in the mean of the step. This is below 1 with
  // weight versions, since an update then has fewer samples than the step.
  double share_of_step(const Action& forward, LayerId layer) const;

 private:
  const Samples& samples_of(const Action& forward);
  std::int64_t count_update(const Action& forward, const std::vector<std::int64_t>& counts) const;

  const StepProgram& program_;
  const ModelSpec& model_;
  std::vector<std::int64_t> sample_counts_;  // by global micro-batch
  // The labels that count, by global micro-batch, for each layer whose loss tells.
  std::map<LayerId, std::vector<std::int64_t>> label_counts_;
  StepInput input_;
  std::map<std::tuple<PipelineId, StageId, MicroBatchId>, Samples> slices_;
};

}  // namespace frazil
