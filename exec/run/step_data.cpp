#include "exec/run/step_data.h"

#include <ATen/core/Tensor.h>

#include "exec/cache/prefix_cache.h"
#include "planner/plan/stage_slices.h"

namespace frazil {

void StepData::begin(const StepInput& input) {
  input_ = input;
  slices_.clear();
}

StageRunner::Data StepData::of(const Action& forward) {
  const MicroBatchId micro_batch = forward.micro_batches->first;
  const Samples& samples = samples_of(forward);
  StageRunner::Data data{
      .samples = &samples,
      .loss_scale = static_cast<double>(samples.count()) / count_samples(forward),
      .key = {.seed = input_.seed, .step = input_.step, .micro_batch = micro_batch},
      .features = {}};
  if (forward.slice) {
    const SampleInterval own = frazil::samples_of(program_.plan, forward);
    data.key.rows = SampleRows{
        .first = own.first, .count = own.count(), .all = samples_in(program_.plan, micro_batch)};
  }
  return data;
}

void StepData::keep_features(const Action& forward, const Tensors& features) {
  const std::span<const std::int64_t> ids = cached_ids(forward);
  if (!ids.empty() && !features.empty()) input_.cache->keep(ids, features);
}

std::span<const std::int64_t> StepData::cached_ids(const Action& forward) const {
  const bool reads = program_.activity.cached > 0 && forward.stage == StageId{0};
  if (!reads || input_.cache == nullptr) return {};
  const std::size_t micro_batch = forward.micro_batches->first.index();
  std::int64_t first = 0;
  for (std::size_t m = 0; m < micro_batch; ++m) first += (*input_.micro_batches)[m].count();
  std::int64_t count = (*input_.micro_batches)[micro_batch].count();
  if (forward.slice) {
    const SampleInterval own = frazil::samples_of(program_.plan, forward);
    first += own.first;
    count = own.count();
  }
  return {input_.sample_ids->data() + first, static_cast<std::size_t>(count)};
}

double StepData::share_of_step(const Action& forward) const {
  return static_cast<double>(count_samples(forward)) / input_.samples;
}

const Samples& StepData::samples_of(const Action& forward) {
  const MicroBatchId micro_batch = forward.micro_batches->first;
  const Samples& whole = (*input_.micro_batches)[micro_batch.index()];
  if (!forward.slice) return whole;
  const SampleInterval own = frazil::samples_of(program_.plan, forward);
  Samples& slice = slices_[{forward.pipeline, forward.stage, micro_batch}];
  slice = narrow(whole, own.first, own.count());
  return slice;
}

// Returns the number of samples that share an F's update: those of the step or, with weight
// versions, those of all micro-batches that go into the same update.
int StepData::count_samples(const Action& forward) const {
  if (program_.versions.empty()) return input_.samples;
  const std::vector<int>& group_of = program_.versions[forward.stage.index()].group_of;
  const int group = group_of[forward.micro_batches->first.index()];
  int samples = 0;
  for (std::size_t m = 0; m < group_of.size(); ++m) {
    if (group_of[m] == group) samples += static_cast<int>((*input_.micro_batches)[m].count());
  }
  return samples;
}

}  // namespace frazil
