#include "planner/lowering/footprint.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "planner/orders/linear_orders.h"
#include "planner/plan/stage_slices.h"
#include "profiles/error.h"
#include "sim/gradient_tree_shape.h"

namespace frazil {
namespace {

// Returns the most gradient sets held if an update after every `group` micro-batches frees the
// sets of these micro-batches.
int find_sets_of_groups(int group, int micro_batches) {
  int most = 1;
  for (int first = 0; first < micro_batches; first += group) {
    const TreeNode owned{first, std::min(first + group, micro_batches)};
    most = std::max(most, held_gradient_sets({owned}, micro_batches));
  }
  return most;
}

// Returns the most gradient sets that a device of the pipeline holds of a layer. A device without
// any micro-batch still holds the finished sum that its update reads.
int find_sets(const Plan& plan, const Pipeline& pipeline,
              const std::vector<MicroBatches>& micro_batches) {
  if (plan.reduction == ReductionMode::kFast || micro_batches.empty()) return 1;
  if (plan.versions == WeightVersions::kStash) return 1;  // an update takes each away at once
  if (plan.versions == WeightVersions::kTwoBuffered) {
    return find_sets_of_groups(static_cast<int>(pipeline.stages.size()), plan.micro_batches());
  }
  std::vector<TreeNode> owned;
  owned.reserve(micro_batches.size());
  for (const MicroBatches& interval : micro_batches) {
    owned.push_back({.first = interval.first.value, .end = interval.last.value + 1});
  }
  return held_gradient_sets(owned, plan.micro_batches());
}

// Returns how many copies of the weights a stage keeps of an updated layer: 1 if all micro-batches
// of a step read one version, 2 with PipeDream-2BW, min(w, M - w + 2) with PipeDream, M
// micro-batches and w warm-up forwards. The w warm-up forwards read one version. After m updates
// w - 1 micro-batches are in flight, and each that is not among the first w has read a version of
// its own. Forwards end after M - w updates. The newest version counts too.
int find_weight_versions(const Plan& plan, const Pipeline& pipeline, StageId stage) {
  if (plan.versions == WeightVersions::kTwoBuffered) return 2;
  const auto* named = std::get_if<NamedSchedule>(&plan.schedule);
  if (plan.versions != WeightVersions::kStash || named == nullptr) return 1;
  const int stages = static_cast<int>(pipeline.stages.size());
  int owned = 0;
  for (const MicroBatches& interval : pipeline.micro_batches) owned += interval.count();
  const int first = std::clamp(warm_up(named->in_flight.value_or(stages), stages, stage.value), 1,
                               std::max(owned, 1));
  return std::min(first, std::max(owned - first + 2, 1));
}

// Returns for every layer how many samples of its output come to `device` from another device, if
// `device` works on the samples `own` of a micro-batch of `all` samples. A call without a
// micro-batch holds for every micro-batch; it requires that each stage lies on one device.
std::vector<int> count_remote_samples(const Pipeline& pipeline, DeviceId device, int all,
                                      const SampleInterval& own,
                                      std::optional<MicroBatchId> micro_batch, std::size_t layers) {
  std::vector<int> remote(layers, 0);
  for (std::size_t s = 0; s < pipeline.stages.size(); ++s) {
    const Stage& stage = pipeline.stages[s];
    int samples = 0;
    if (!micro_batch) {
      samples = stage.devices.front() == device ? 0 : own.count();
    } else {
      for (const StagePart& part : find_parts(pipeline, StageId{s}, *micro_batch, all, own)) {
        if (part.device != device) samples += part.samples.count();
      }
    }
    for_each_layer(stage, [&](LayerId layer) { remote.at(layer.index()) = samples; });
  }
  return remote;
}

// A profile bounds single counts, not their sums and products in a plan, which may pass 64 bits.
__extension__ using Wide = __int128;

Bytes add(Bytes sum, Bytes part, int times) {
  const Wide total = sum.count + static_cast<Wide>(part.count) * times;
  if (total > kLargestQuantity) {
    throw InputError("plan", 0, fmt::format("a stage of more than {} bytes", kLargestQuantity),
                     "a stage of fewer bytes");
  }
  return {static_cast<std::int64_t>(total)};
}

bool lies_on(const Stage& stage, DeviceId device) {
  return std::find(stage.devices.begin(), stage.devices.end(), device) != stage.devices.end();
}

// Returns the bytes that the layers with a backward read from outside the stage or from the cache,
// model inputs included.
Bytes find_kept_inputs(int samples, const Stage& stage, const ModelProfile& profile,
                       const Activity& activity) {
  std::vector<bool> reads(profile.layers.size(), false);
  Bytes kept;
  for (const Edge& edge : profile.edges) {
    reads[edge.to.index()] = true;
    const bool is_inside = holds_layer(stage, edge.from) && !activity.is_cached(edge.from);
    if (holds_layer(stage, edge.to) && !is_inside && activity.backward(edge.to)) {
      kept = add(kept, edge.bytes(samples), 1);
    }
  }
  for (std::size_t l = 0; l < profile.layers.size(); ++l) {
    if (reads[l] || !holds_layer(stage, LayerId{l}) || !activity.backward(LayerId{l})) continue;
    kept = add(kept, profile.input_bytes_per_sample, samples);
  }
  return kept;
}

// Returns the bytes that the layers without a backward receive. Layers with a backward hold their
// input in their stash already.
Bytes find_received(const Stage& stage, const std::vector<int>& remote_samples,
                    const ModelProfile& profile, const Activity& activity) {
  Bytes received;
  for (const Edge& edge : profile.edges) {
    const int samples = remote_samples[edge.from.index()];
    if (samples == 0 || !holds_layer(stage, edge.to) || activity.backward(edge.to)) continue;
    if (activity.is_idle(edge.to)) continue;
    received = add(received, edge.bytes(samples), 1);
  }
  return received;
}

// Returns the received bytes of the micro-batch that receives most. Micro-batches differ if stages
// share devices, for some then find their input on the device itself.
Bytes find_most_received(const Plan& plan, PipelineId pipeline_id, StageId stage_id,
                         DeviceId device, const ModelProfile& profile, const Activity& activity) {
  const Pipeline& pipeline = plan.pipelines[pipeline_id.index()];
  const Stage& stage = pipeline.stages[stage_id.index()];
  const int all = plan.micro_batch_size;
  const SampleInterval own = samples_of(stage, slice_on(stage, device), all);
  const auto count_remote = [&](std::optional<MicroBatchId> m) {
    return count_remote_samples(pipeline, device, all, own, m, profile.layers.size());
  };
  std::set<std::vector<int>> seen;
  if (has_shared_stage(pipeline)) {
    for (const MicroBatches& owned : micro_batches_on(pipeline, stage_id, device)) {
      for (MicroBatchId m = owned.first; m <= owned.last; ++m.value) seen.insert(count_remote(m));
    }
  } else {
    seen.insert(count_remote(std::nullopt));
  }
  Bytes most;
  for (const std::vector<int>& remote : seen) {
    most = std::max(most, find_received(stage, remote, profile, activity));
  }
  return most;
}

// Returns the gradient sets of a layer that a device holds in some of the pipelines.
int find_sets_in(const Plan& plan, std::span<const int> pipelines, LayerId layer, DeviceId device) {
  int sets = 0;
  for (const int p : pipelines) {
    const Pipeline& pipeline = plan.pipelines[static_cast<std::size_t>(p)];
    for (std::size_t s = 0; s < pipeline.stages.size(); ++s) {
      if (!lies_on(pipeline.stages[s], device) || !holds_layer(pipeline.stages[s], layer)) continue;
      sets += find_sets(plan, pipeline, micro_batches_on(pipeline, StageId{s}, device));
    }
  }
  return sets;
}

}  // namespace

int find_gradient_sets(const Plan& plan, LayerId layer, DeviceId device) {
  std::vector<int> all(plan.pipelines.size());
  std::iota(all.begin(), all.end(), 0);
  return find_sets_in(plan, all, layer, device);
}

std::vector<int> find_gradient_sets(const Plan& plan, LayerId layer) {
  std::vector<int> sets;
  for (const Pipeline& pipeline : plan.pipelines) {
    for (std::size_t s = 0; s < pipeline.stages.size(); ++s) {
      const Stage& stage = pipeline.stages[s];
      if (!holds_layer(stage, layer)) continue;
      for (const DeviceId device : stage.devices) {
        if (device.index() >= sets.size()) sets.resize(device.index() + 1, 0);
        sets[device.index()] +=
            find_sets(plan, pipeline, micro_batches_on(pipeline, StageId{s}, device));
      }
    }
  }
  return sets;
}

std::vector<std::vector<int>> list_pipelines(const Plan& plan) {
  std::vector<std::vector<int>> pipelines;
  for (std::size_t p = 0; p < plan.pipelines.size(); ++p) {
    const int own = static_cast<int>(p);
    for (const Stage& stage : plan.pipelines[p].stages) {
      for (const DeviceId device : stage.devices) {
        if (device.index() >= pipelines.size()) pipelines.resize(device.index() + 1);
        std::vector<int>& on = pipelines[device.index()];
        if (on.empty() || on.back() != own) on.push_back(own);
      }
    }
  }
  return pipelines;
}

StageFootprint find_footprint(const Plan& plan, PipelineId pipeline_id, StageId stage_id,
                              DeviceId device, const ModelProfile& profile,
                              const Activity& activity,
                              std::optional<std::span<const int>> pipelines_on) {
  const Pipeline& pipeline = plan.pipelines.at(pipeline_id.index());
  const Stage& stage = pipeline.stages.at(stage_id.index());
  std::vector<int> looked_up;
  if (!pipelines_on) {
    looked_up = std::move(list_pipelines(plan)[device.index()]);
    pipelines_on = looked_up;
  }
  const bool is_once = pipelines_on->size() == 1;
  const int own_sets = find_sets(plan, pipeline, micro_batches_on(pipeline, stage_id, device));
  const int versions = find_weight_versions(plan, pipeline, stage_id);
  // A slice may have no samples if the size is that of a short micro-batch of another pipeline.
  const int samples = samples_of(stage, slice_on(stage, device), plan.micro_batch_size).count();

  StageFootprint footprint;
  for_each_layer(stage, [&](LayerId id) {
    const Layer& layer = profile.layers.at(id.index());
    const bool updated = activity.layers.at(id.index()).weight_gradient;
    footprint.parameters = add(footprint.parameters, layer.parameters, 1);
    if (updated) {
      footprint.parameters = add(footprint.parameters, layer.trainable(), versions - 1);
      const int sets = is_once ? own_sets : find_sets_in(plan, *pipelines_on, id, device);
      footprint.gradients = add(footprint.gradients, layer.trainable(), sets);
      footprint.optimizer = add(footprint.optimizer, layer.optimizer_state, 1);
    }
    if (activity.backward(id) && samples > 0) {
      const Bytes stash = cost_at(layer, samples).cost.kept(activity.layers.at(id.index()).trains);
      footprint.stash_per_micro_batch = add(footprint.stash_per_micro_batch, stash, 1);
      if (!updated) footprint.stash_of_frozen = add(footprint.stash_of_frozen, stash, 1);
    }
  });
  footprint.receive_per_micro_batch =
      find_most_received(plan, pipeline_id, stage_id, device, profile, activity);
  if (stage.memory == MemoryPolicy::kRecompute && samples > 0) {
    footprint.input_per_micro_batch = std::min(footprint.stash_per_micro_batch,
                                               find_kept_inputs(samples, stage, profile, activity));
  }
  return footprint;
}

StageFootprint find_footprint(const Plan& plan, PipelineId pipeline, StageId stage,
                              const ModelProfile& profile, const Activity& activity) {
  const Stage& described = plan.pipelines.at(pipeline.index()).stages.at(stage.index());
  return find_footprint(plan, pipeline, stage, described.devices.front(), profile, activity);
}

}  // namespace frazil
