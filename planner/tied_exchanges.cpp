// Parameters tied across devices.

#include <algorithm>
#include <set>

#include "planner/reduction_groups.h"
#include "profiles/error.h"

namespace frazil {
namespace {

StageId find_stage(const Pipeline& pipeline, LayerId layer) {
  const auto holds = [&](const LayerRange& range) {
    return range.first <= layer && layer <= range.last;
  };
  const auto stage =
      std::find_if(pipeline.stages.begin(), pipeline.stages.end(), [&](const Stage& candidate) {
        return std::any_of(candidate.layers.begin(), candidate.layers.end(), holds);
      });
  ENSURE(stage != pipeline.stages.end(), "a layer lies in no stage of the pipeline");
  return StageId{static_cast<std::size_t>(stage - pipeline.stages.begin())};
}

std::vector<TiedUse> find_uses(const TiedParameter& tied, const Pipeline& pipeline,
                               const Activity& activity) {
  std::vector<LayerId> layers;
  for (const LayerId layer : tied.layers) {
    if (activity.layers.at(layer.index()).weight_gradient) layers.push_back(layer);
  }
  std::sort(layers.begin(), layers.end());
  std::vector<TiedUse> uses;
  for (const LayerId layer : layers) {
    const StageId stage = find_stage(pipeline, layer);
    uses.push_back({layer, stage, pipeline.stages[stage.index()].devices});
  }
  return uses;
}

// All devices of `uses`; none when each of them has every use.
std::vector<DeviceId> find_partners(const std::vector<TiedUse>& uses) {
  std::set<DeviceId> all;
  for (const TiedUse& use : uses) all.insert(use.devices.begin(), use.devices.end());
  const bool complete = std::all_of(uses.begin(), uses.end(), [&](const TiedUse& use) {
    return use.devices.size() == all.size();
  });
  return complete ? std::vector<DeviceId>{} : std::vector<DeviceId>(all.begin(), all.end());
}

}  // namespace

std::vector<TiedExchange> find_tied_exchanges(const Plan& plan, const ModelProfile& profile,
                                              const Activity& activity) {
  std::vector<TiedExchange> exchanges;
  for (std::size_t p = 0; p < plan.pipelines.size(); ++p) {
    for (std::size_t t = 0; t < profile.tied.size(); ++t) {
      TiedExchange exchange{PipelineId{p}, t, {}, {}};
      exchange.uses = find_uses(profile.tied[t], plan.pipelines[p], activity);
      exchange.collective.kind = CollectiveKind::kAllGather;
      exchange.collective.devices = find_partners(exchange.uses);
      exchange.collective.size =
          profile.tied[t].bytes * static_cast<std::int64_t>(exchange.uses.size());
      if (!exchange.collective.devices.empty()) exchanges.push_back(std::move(exchange));
    }
  }
  return exchanges;
}

}  // namespace frazil
