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

const std::vector<DeviceId>& find_holders(const Pipeline& pipeline, LayerId layer) {
  return pipeline.stages[find_stage(pipeline, layer).index()].devices;
}

std::vector<LayerId> find_updated_uses(const TiedParameter& tied, const Activity& activity) {
  std::vector<LayerId> layers;
  for (const LayerId layer : tied.layers) {
    if (activity.layers.at(layer.index()).weight_gradient) layers.push_back(layer);
  }
  std::sort(layers.begin(), layers.end());
  return layers;
}

// In one pipeline.
std::set<DeviceId> find_partners(const Pipeline& pipeline, const std::vector<LayerId>& layers) {
  std::set<DeviceId> all;
  for (const LayerId layer : layers) {
    const std::vector<DeviceId>& holders = find_holders(pipeline, layer);
    all.insert(holders.begin(), holders.end());
  }
  return all;
}

TiedExchange make_exchange(PipelineId pipeline, const Pipeline& described, std::size_t tied,
                           const TiedParameter& parameter, const std::vector<LayerId>& layers) {
  TiedExchange exchange{pipeline, tied, {}, {}};
  for (const LayerId layer : layers) {
    const StageId stage = find_stage(described, layer);
    exchange.uses.push_back({layer, stage, described.stages[stage.index()].devices});
  }
  const std::set<DeviceId> partners = find_partners(described, layers);
  exchange.collective.kind = CollectiveKind::kAllGather;
  exchange.collective.devices.assign(partners.begin(), partners.end());
  exchange.collective.size = parameter.bytes * static_cast<std::int64_t>(layers.size());
  return exchange;
}

}  // namespace

std::vector<TiedMessage> find_tied_messages(const Plan& plan, const std::vector<LayerId>& layers) {
  std::vector<TiedMessage> messages;
  for (const LayerId layer : layers) {
    std::set<DeviceId> served;
    for (const Pipeline& pipeline : plan.pipelines) {
      const std::vector<DeviceId>& holders = find_holders(pipeline, layer);
      served.insert(holders.begin(), holders.end());
    }
    for (std::size_t p = 0; p < plan.pipelines.size(); ++p) {
      const std::vector<DeviceId>& holders = find_holders(plan.pipelines[p], layer);
      std::size_t turn = 0;
      for (const DeviceId device : find_partners(plan.pipelines[p], layers)) {
        if (!served.insert(device).second) continue;
        messages.push_back({PipelineId{p}, layer, holders[turn++ % holders.size()], device});
      }
    }
  }
  return messages;
}

std::vector<TiedExchange> find_tied_exchanges(const Plan& plan, const ModelProfile& profile,
                                              const Activity& activity) {
  std::vector<TiedExchange> exchanges;
  for (std::size_t t = 0; t < profile.tied.size(); ++t) {
    const std::vector<LayerId> layers = find_updated_uses(profile.tied[t], activity);
    std::set<PipelineId> sending;
    for (const TiedMessage& message : find_tied_messages(plan, layers)) {
      sending.insert(message.pipeline);
    }
    for (const PipelineId p : sending) {
      exchanges.push_back(make_exchange(p, plan.pipelines[p.index()], t, profile.tied[t], layers));
    }
  }
  std::stable_sort(exchanges.begin(), exchanges.end(),
                   [](const auto& a, const auto& b) { return a.pipeline < b.pipeline; });
  return exchanges;
}

}  // namespace frazil
