#include "planner/reduction_groups.h"

#include <algorithm>
#include <map>

#include "profiles/error.h"
#include "sim/gradient_tree_shape.h"

namespace frazil {
namespace {

std::vector<std::vector<ReductionOwner>> find_owners(const Plan& plan, std::size_t layers) {
  std::vector<std::vector<ReductionOwner>> owners(layers);
  for (std::size_t p = 0; p < plan.pipelines.size(); ++p) {
    const std::vector<Stage>& stages = plan.pipelines[p].stages;
    for (std::size_t s = 0; s < stages.size(); ++s) {
      for (const DeviceId device : stages[s].devices) {
        const ReductionOwner owner{PipelineId{p}, StageId{s}, device,
                                   micro_batches_on(plan.pipelines[p], StageId{s}, device)};
        for (const LayerRange& range : stages[s].layers) {
          for (LayerId layer = range.first; layer <= range.last; ++layer.value) {
            owners.at(layer.index()).push_back(owner);
          }
        }
      }
    }
  }
  return owners;
}

// A group without layers yet, and so without a size.
ReductionGroup make_group(const Plan& plan, const std::vector<ReductionOwner>& owners) {
  std::map<DeviceId, std::vector<TreeNode>> owned;
  for (const ReductionOwner& owner : owners) {
    auto& intervals = owned[owner.device];
    for (const MicroBatches& interval : owner.micro_batches) {
      intervals.push_back({interval.first.value, interval.last.value + 1});
    }
  }
  ReductionGroup group{.layers = {}, .owners = owners, .collective = {}, .nodes = {}};
  Collective& collective = group.collective;
  collective.kind = plan.reduction == ReductionMode::kExact ? CollectiveKind::kExactTreeAllReduce
                                                            : CollectiveKind::kRingAllReduce;
  for (auto& [device, intervals] : owned) {
    std::sort(intervals.begin(), intervals.end());
    collective.devices.push_back(device);
    group.nodes.push_back(maximal_nodes(intervals, plan.micro_batches()));
    collective.owned.push_back(static_cast<int>(group.nodes.back().size()));
  }
  return group;
}

}  // namespace

std::vector<ReductionGroup> find_reduction_groups(const Plan& plan, const ModelProfile& profile,
                                                  const Activity& activity) {
  std::vector<ReductionGroup> groups;
  if (plan.pipelines.size() == 1 && !has_shared_stage(plan.pipelines.front())) return groups;
  const auto owners = find_owners(plan, profile.layers.size());
  for (std::size_t layer = 0; layer < profile.layers.size(); ++layer) {
    if (!activity.layers.at(layer).weight_gradient) continue;
    if (groups.empty() || groups.back().owners != owners[layer]) {
      groups.push_back(make_group(plan, owners[layer]));
    }
    groups.back().layers.push_back(LayerId{layer});
    groups.back().collective.size += profile.layers[layer].parameters;
  }
  std::erase_if(groups,
                [](const ReductionGroup& group) { return group.collective.devices.size() < 2; });
  return groups;
}

std::vector<ReductionGroup> cut_into_buckets(const std::vector<ReductionGroup>& groups,
                                             const ModelProfile& profile, Bytes bucket) {
  std::vector<ReductionGroup> buckets;
  for (auto group = groups.rbegin(); group != groups.rend(); ++group) {
    bool is_full = true;
    for (auto layer = group->layers.rbegin(); layer != group->layers.rend(); ++layer) {
      if (is_full) {
        buckets.push_back(*group);
        buckets.back().layers.clear();
        buckets.back().collective.size = Bytes{0};
      }
      ReductionGroup& open = buckets.back();
      open.layers.insert(open.layers.begin(), *layer);
      open.collective.size += profile.layers[layer->index()].parameters;
      is_full = open.collective.size >= bucket;
    }
  }
  return buckets;
}

}  // namespace frazil
