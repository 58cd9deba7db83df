#include "planner/plan/reduction_groups.h"

#include <algorithm>

#include "sim/gradient_tree_shape.h"

namespace frazil {
namespace {

ReductionGroup make_group(const Plan& plan, const ModelProfile& profile,
                          const std::vector<LayerHolder>& holders,
                          const std::vector<LayerId>& layers) {
  ReductionGroup group{.layers = layers, .owners = holders, .collective = {}, .nodes = {}};
  Collective& collective = group.collective;
  collective.kind = plan.reduction == ReductionMode::kExact ? CollectiveKind::kExactTreeAllReduce
                                                            : CollectiveKind::kRingAllReduce;
  for (const LayerOwner& owner : find_owners(holders)) {
    collective.devices.push_back(owner.device);
    group.nodes.push_back(maximal_nodes(owner.micro_batches, plan.micro_batches()));
    collective.owned.push_back(static_cast<int>(group.nodes.back().size()));
  }
  for (const LayerId layer : layers) collective.size += profile.layers[layer.index()].trainable();
  return group;
}

}  // namespace

std::vector<ReductionGroup> find_reduction_groups(const Plan& plan, const ModelProfile& profile,
                                                  const Activity& activity) {
  std::vector<ReductionGroup> groups;
  if (plan.pipelines.size() == 1 && !has_shared_stage(plan.pipelines.front())) return groups;
  const auto holders = find_holders(plan, profile.layers.size());
  for (const std::vector<LayerId>& layers : find_reduced_layers(holders, activity)) {
    groups.push_back(make_group(plan, profile, holders[layers.front().index()], layers));
  }
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
      open.collective.size += profile.layers[layer->index()].trainable();
      is_full = open.collective.size >= bucket;
    }
  }
  return buckets;
}

}  // namespace frazil
