#include "planner/plan/tied_exchanges.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "planner/plan/plan_topology.h"
#include "profiles/error.h"

namespace frazil {
namespace {

const std::vector<DeviceId>& devices_holding(const Pipeline& pipeline, LayerId layer) {
  return pipeline.stages[find_stage(pipeline, layer).index()].devices;
}

// Returns the devices of one pipeline that hold some use.
std::set<DeviceId> find_partners(const Pipeline& pipeline, const std::vector<LayerId>& layers) {
  std::set<DeviceId> all;
  for (const LayerId layer : layers) {
    const std::vector<DeviceId>& holders = devices_holding(pipeline, layer);
    all.insert(holders.begin(), holders.end());
  }
  return all;
}

Collective make_gather(const std::vector<TiedMessage>& messages, Bytes sum) {
  std::map<DeviceId, int> sent;
  std::map<DeviceId, int> received;
  for (const TiedMessage& message : messages) {
    sent[message.from] += 1;
    sent[message.to] += 0;
    received[message.to] += 1;
    received[message.from] += 0;
  }
  Collective gather;
  gather.kind = CollectiveKind::kAllGather;
  gather.size = sum * static_cast<std::int64_t>(sent.size());
  for (const auto& [device, times] : sent) {
    gather.devices.push_back(device);
    gather.owned.push_back(times);
  }
  for (const auto& [device, times] : received) gather.owned.push_back(times);
  const auto others = static_cast<int>(sent.size()) - 1;
  const bool is_whole = std::all_of(gather.owned.begin(), gather.owned.end(),
                                    [others](int shares) { return shares == others; });
  if (is_whole) gather.owned.clear();
  return gather;
}

// Returns the uses on `devices` in all pipelines, for a device may join an exchange in one pipeline
// and hold a use in another.
std::vector<TiedUse> find_uses_on(const std::vector<DeviceId>& devices, const Plan& plan,
                                  const std::vector<LayerId>& layers) {
  std::vector<TiedUse> uses;
  for (std::size_t p = 0; p < plan.pipelines.size(); ++p) {
    for (const LayerId layer : layers) {
      TiedUse use{PipelineId{p}, layer, find_stage(plan.pipelines[p], layer), {}};
      for (const DeviceId device : devices_holding(plan.pipelines[p], layer)) {
        if (std::binary_search(devices.begin(), devices.end(), device)) {
          use.devices.push_back(device);
        }
      }
      if (!use.devices.empty()) uses.push_back(std::move(use));
    }
  }
  return uses;
}

}  // namespace

std::vector<TiedMessage> find_tied_messages(const Plan& plan, const std::vector<LayerId>& layers) {
  std::vector<TiedMessage> messages;
  for (const LayerId layer : layers) {
    std::set<DeviceId> served;
    for (const Pipeline& pipeline : plan.pipelines) {
      const std::vector<DeviceId>& holders = devices_holding(pipeline, layer);
      served.insert(holders.begin(), holders.end());
    }
    for (std::size_t p = 0; p < plan.pipelines.size(); ++p) {
      const std::vector<DeviceId>& holders = devices_holding(plan.pipelines[p], layer);
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
    std::map<PipelineId, std::vector<TiedMessage>> messages;
    for (const TiedMessage& message : find_tied_messages(plan, layers)) {
      messages[message.pipeline].push_back(message);
    }
    for (auto& [pipeline, sent] : messages) {
      TiedExchange exchange{pipeline, t, {}, std::move(sent), {}};
      exchange.collective = make_gather(exchange.messages, profile.tied[t].bytes);
      exchange.uses = find_uses_on(exchange.collective.devices, plan, layers);
      exchanges.push_back(std::move(exchange));
    }
  }
  std::stable_sort(exchanges.begin(), exchanges.end(),
                   [](const auto& a, const auto& b) { return a.pipeline < b.pipeline; });
  return exchanges;
}

}  // namespace frazil
