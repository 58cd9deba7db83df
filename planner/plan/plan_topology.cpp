#include "planner/plan/plan_topology.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "profiles/error.h"

namespace frazil {
namespace {

constexpr StageId kNowhere{-1};

}  // namespace

std::vector<StageId> find_stages(const Pipeline& pipeline, std::size_t layers) {
  std::vector<StageId> stage_of(layers, kNowhere);
  for (std::size_t stage = 0; stage < pipeline.stages.size(); ++stage) {
    for_each_layer(pipeline.stages[stage],
                   [&](LayerId layer) { stage_of.at(layer.index()) = StageId{stage}; });
  }
  ENSURE(std::find(stage_of.begin(), stage_of.end(), kNowhere) == stage_of.end(),
         "a layer lies in no stage of the pipeline");
  return stage_of;
}

PipelineTopology find_topology(const Pipeline& pipeline, const ModelProfile& structure,
                               const Activity& activity) {
  PipelineTopology topology;
  topology.stage_of = find_stages(pipeline, structure.layers.size());
  std::map<std::pair<StageId, StageId>, StageCrossing> crossings;
  for (std::size_t e = 0; e < structure.edges.size(); ++e) {
    const StageId from = topology.stage_of.at(structure.edges[e].from.index());
    const StageId to = topology.stage_of.at(structure.edges[e].to.index());
    if (from == to || activity.is_idle(structure.edges[e].to)) continue;
    StageCrossing& crossing = crossings[{from, to}];
    crossing.from = from;
    crossing.to = to;
    crossing.edges.push_back(e);
    if (activity.edge_carries.at(e)) crossing.carrying.push_back(e);
  }
  topology.crossings.reserve(crossings.size());
  topology.incoming.resize(pipeline.stages.size());
  topology.outgoing.resize(pipeline.stages.size());
  for (auto& [stages, crossing] : crossings) {
    topology.outgoing[stages.first.index()].push_back(topology.crossings.size());
    topology.incoming[stages.second.index()].push_back(topology.crossings.size());
    topology.crossings.push_back(std::move(crossing));
  }
  return topology;
}

std::vector<std::vector<LayerHolder>> find_holders(const Plan& plan, std::size_t layers) {
  std::vector<std::vector<LayerHolder>> holders(layers);
  for (std::size_t p = 0; p < plan.pipelines.size(); ++p) {
    const std::vector<Stage>& stages = plan.pipelines[p].stages;
    for (std::size_t s = 0; s < stages.size(); ++s) {
      for (const DeviceId device : stages[s].devices) {
        const LayerHolder holder{PipelineId{p}, StageId{s}, device,
                                 micro_batches_on(plan.pipelines[p], StageId{s}, device)};
        for_each_layer(stages[s],
                       [&](LayerId layer) { holders.at(layer.index()).push_back(holder); });
      }
    }
  }
  return holders;
}

std::vector<LayerOwner> find_owners(const std::vector<LayerHolder>& holders) {
  std::map<DeviceId, std::vector<TreeNode>> owned;
  for (const LayerHolder& holder : holders) {
    std::vector<TreeNode>& intervals = owned[holder.device];
    for (const MicroBatches& interval : holder.micro_batches) {
      intervals.push_back({interval.first.value, interval.last.value + 1});
    }
  }
  std::vector<LayerOwner> owners;
  owners.reserve(owned.size());
  for (auto& [device, intervals] : owned) {
    std::sort(intervals.begin(), intervals.end());
    owners.push_back({device, std::move(intervals)});
  }
  return owners;
}

std::vector<std::vector<LayerId>> find_reduced_layers(
    const std::vector<std::vector<LayerHolder>>& holders, const Activity& activity) {
  std::vector<std::vector<LayerId>> groups;
  for (std::size_t layer = 0; layer < holders.size(); ++layer) {
    if (!activity.layers.at(layer).weight_gradient) continue;
    const bool joins = !groups.empty() && holders[groups.back().front().index()] == holders[layer];
    if (!joins) groups.emplace_back();
    groups.back().push_back(LayerId{layer});
  }
  std::erase_if(groups, [&](const std::vector<LayerId>& group) {
    return find_owners(holders[group.front().index()]).size() < 2;
  });
  return groups;
}

PlanTopology find_topology(const Plan& plan, const ModelProfile& structure,
                           const Activity& activity) {
  PlanTopology topology;
  for (const Pipeline& pipeline : plan.pipelines) {
    topology.pipelines.push_back(find_topology(pipeline, structure, activity));
  }
  const auto holders = find_holders(plan, structure.layers.size());
  for (const auto& of_layer : holders) topology.owners.push_back(find_owners(of_layer));
  topology.groups = find_reduced_layers(holders, activity);
  return topology;
}

std::vector<std::vector<DeviceId>> find_holding_devices(const Plan& plan, std::size_t layers) {
  std::vector<std::set<DeviceId>> holders(layers);
  for (const Pipeline& pipeline : plan.pipelines) {
    for (const Stage& stage : pipeline.stages) {
      for_each_layer(stage, [&](LayerId layer) {
        holders.at(layer.index()).insert(stage.devices.begin(), stage.devices.end());
      });
    }
  }
  std::vector<std::vector<DeviceId>> lists;
  lists.reserve(layers);
  for (const std::set<DeviceId>& devices : holders)
    lists.emplace_back(devices.begin(), devices.end());
  return lists;
}

StageId find_stage(const Pipeline& pipeline, LayerId layer) {
  const auto stage =
      std::find_if(pipeline.stages.begin(), pipeline.stages.end(),
                   [&](const Stage& candidate) { return holds_layer(candidate, layer); });
  ENSURE(stage != pipeline.stages.end(), "a layer lies in no stage of the pipeline");
  return StageId{static_cast<std::size_t>(stage - pipeline.stages.begin())};
}

std::vector<LayerId> find_updated_uses(const TiedParameter& tied, const Activity& activity) {
  std::vector<LayerId> layers;
  for (const LayerId layer : tied.layers) {
    if (activity.layers.at(layer.index()).weight_gradient) layers.push_back(layer);
  }
  std::sort(layers.begin(), layers.end());
  return layers;
}

}  // namespace frazil
