#include "planner/footprint.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "planner/linear_orders.h"
#include "profiles/error.h"
#include "sim/gradient_tree_shape.h"

namespace frazil {
namespace {

// Gradient sets a pipeline holds at its worst moment. An owner without any micro-batches still
// holds the finished sum that its update reads; a running sum is one set.
int find_gradient_sets(const Plan& plan, const Pipeline& pipeline) {
  if (plan.reduction == ReductionMode::kFast || pipeline.micro_batches.empty()) return 1;
  if (plan.versions == WeightVersions::kStash) return 1;  // an update takes each away at once
  std::vector<TreeNode> owned;
  for (const MicroBatches& interval : pipeline.micro_batches) {
    owned.push_back({.first = interval.first.value, .end = interval.last.value + 1});
  }
  return held_gradient_sets(owned, plan.micro_batches());
}

// Copies of the weights that the plan's versions keep at a stage: 1 where they are in step, one for
// each micro-batch in flight with PipeDream, two with PipeDream-2BW.
int find_weight_versions(const Plan& plan, const Pipeline& pipeline, StageId stage) {
  if (plan.versions == WeightVersions::kTwoBuffered) return 2;
  const auto* named = std::get_if<NamedSchedule>(&plan.schedule);
  if (plan.versions != WeightVersions::kStash || named == nullptr) return 1;
  const int stages = static_cast<int>(pipeline.stages.size());
  int owned = 0;
  for (const MicroBatches& interval : pipeline.micro_batches) owned += interval.count();
  return std::clamp(warm_up(named->in_flight.value_or(stages), stages, stage.value), 1,
                    std::max(owned, 1));
}

// For every layer, whether a tensor it makes must be received by a stage on `devices`.
std::vector<bool> find_remote_layers(const Pipeline& pipeline, const std::vector<DeviceId>& devices,
                                     std::size_t layers) {
  std::vector<bool> remote(layers, false);
  for (const Stage& stage : pipeline.stages) {
    if (stage.devices == devices) continue;
    for (const LayerRange& range : stage.layers) {
      for (LayerId layer = range.first; layer <= range.last; ++layer.value) {
        remote.at(layer.index()) = true;
      }
    }
  }
  return remote;
}

// A profile bounds single counts, not what a plan makes of them.
__extension__ using Wide = __int128;

Bytes add(Bytes sum, Bytes part, int times) {
  const Wide total = sum.count + static_cast<Wide>(part.count) * times;
  if (total > kLargestQuantity) {
    throw InputError("plan", 0, fmt::format("a stage of more than {} bytes", kLargestQuantity),
                     "a stage of fewer bytes");
  }
  return {static_cast<std::int64_t>(total)};
}

bool holds_layer(const Stage& stage, LayerId layer) {
  return std::any_of(stage.layers.begin(), stage.layers.end(), [&](const LayerRange& range) {
    return range.first <= layer && layer <= range.last;
  });
}

// What the layers with a backward read from outside the stage, model inputs included.
Bytes find_kept_inputs(const Plan& plan, const Stage& stage, const ModelProfile& profile,
                       const Activity& activity) {
  std::vector<bool> reads(profile.layers.size(), false);
  Bytes kept;
  for (const Edge& edge : profile.edges) {
    reads[edge.to.index()] = true;
    if (holds_layer(stage, edge.to) && !holds_layer(stage, edge.from) &&
        activity.backward(edge.to)) {
      kept = add(kept, edge.bytes(plan.micro_batch_size), 1);
    }
  }
  for (std::size_t l = 0; l < profile.layers.size(); ++l) {
    if (reads[l] || !holds_layer(stage, LayerId{l}) || !activity.backward(LayerId{l})) continue;
    kept = add(kept, profile.input_bytes_per_sample, plan.micro_batch_size);
  }
  return kept;
}

}  // namespace

StageFootprint find_footprint(const Plan& plan, PipelineId pipeline_id, StageId stage_id,
                              const ModelProfile& profile, const Activity& activity) {
  const Pipeline& pipeline = plan.pipelines.at(pipeline_id.index());
  const Stage& stage = pipeline.stages.at(stage_id.index());
  const int gradient_sets = find_gradient_sets(plan, pipeline);
  const int versions = find_weight_versions(plan, pipeline, stage_id);

  StageFootprint footprint;
  for (const LayerRange& range : stage.layers) {
    for (LayerId id = range.first; id <= range.last; ++id.value) {
      const Layer& layer = profile.layers.at(id.index());
      footprint.parameters = add(footprint.parameters, layer.parameters, versions);
      if (activity.layers.at(id.index()).weight_gradient) {
        footprint.gradients = add(footprint.gradients, layer.parameters, gradient_sets);
        footprint.optimizer = add(footprint.optimizer, layer.optimizer_state, 1);
      }
      if (activity.backward(id)) {
        const Bytes stash = cost_at(layer, plan.micro_batch_size).cost.stash;
        footprint.stash_per_micro_batch = add(footprint.stash_per_micro_batch, stash, 1);
      }
    }
  }
  const std::vector<bool> remote =
      find_remote_layers(pipeline, stage.devices, profile.layers.size());
  for (const Edge& edge : profile.edges) {
    // The stash of a layer with a backward holds its input already.
    if (remote[edge.from.index()] && holds_layer(stage, edge.to) && !activity.backward(edge.to)) {
      footprint.receive_per_micro_batch =
          add(footprint.receive_per_micro_batch, edge.bytes(plan.micro_batch_size), 1);
    }
  }
  if (stage.memory == MemoryPolicy::kRecompute) {
    footprint.input_per_micro_batch =
        std::min(footprint.stash_per_micro_batch, find_kept_inputs(plan, stage, profile, activity));
  }
  return footprint;
}

}  // namespace frazil
