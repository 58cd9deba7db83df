#include "exec/run/step_data.h"

#include <ATen/core/Tensor.h>

#include <numeric>

#include "exec/cache/prefix_cache.h"
#include "planner/plan/stage_slices.h"

namespace frazil {
namespace {

// Returns 0 of nothing, as where no label of a step counts.
double share_of(std::int64_t part, std::int64_t all) {
  return all == 0 ? 0 : static_cast<double>(part) / static_cast<double>(all);
}

}  // namespace

void StepData::begin(const StepInput& input) {
  input_ = input;
  slices_.clear();
  sample_counts_.clear();
  label_counts_.clear();
  for (const Samples& samples : *input.micro_batches) sample_counts_.push_back(samples.count());
  for (std::size_t l = 0; l < model_.layers.size(); ++l) {
    const LayerSpec& layer = model_.layers[l];
    if (!layer.count_labels) continue;
    std::vector<std::int64_t>& counts = label_counts_[LayerId{l}];
    for (const Samples& samples : *input.micro_batches) {
      counts.push_back(layer.count_labels(samples.labels));
    }
  }
}

StageRunner::Data StepData::of(const Action& forward) {
  const MicroBatchId micro_batch = forward.micro_batches->first;
  const Samples& samples = samples_of(forward);
  StageRunner::Data data{
      .samples = &samples,
      .loss_scale = share_of(samples.count(), count_update(forward, sample_counts_)),
      .key = {.seed = input_.seed, .step = input_.step, .micro_batch = micro_batch},
      .features = {}};
  for (const auto& [layer, counts] : label_counts_) {
    const std::int64_t own = forward.slice
                                 ? model_.layers[layer.index()].count_labels(samples.labels)
                                 : counts[micro_batch.index()];
    data.label_scales[layer] = share_of(own, count_update(forward, counts));
  }
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

double StepData::share_of_step(const Action& forward, LayerId layer) const {
  const auto labels = label_counts_.find(layer);
  const std::vector<std::int64_t>& counts =
      labels == label_counts_.end() ? sample_counts_ : labels->second;
  return share_of(count_update(forward, counts),
                  std::accumulate(counts.begin(), counts.end(), std::int64_t{0}));
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

// Adds up the counts of the micro-batches that share an F's update: those of the step or, with
// weight versions, those that go into the same update.
std::int64_t StepData::count_update(const Action& forward,
                                    const std::vector<std::int64_t>& counts) const {
  if (program_.versions.empty()) {
    return std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
  }
  const std::vector<int>& group_of = program_.versions[forward.stage.index()].group_of;
  const int group = group_of[forward.micro_batches->first.index()];
  std::int64_t count = 0;
  for (std::size_t m = 0; m < group_of.size(); ++m) {
    if (group_of[m] == group) count += counts[m];
  }
  return count;
}

}  // namespace frazil
