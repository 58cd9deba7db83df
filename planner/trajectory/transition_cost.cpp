#include "planner/trajectory/transition_cost.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "profiles/error.h"

namespace frazil {
namespace {

struct Traffic {
  Duration sends{0};
  Duration receives{0};
};

Duration time_of(Bytes size, const Link& link) { return size / link.bandwidth + link.latency; }

void move_layer(Bytes size, const std::vector<DeviceId>& holders,
                const std::vector<DeviceId>& wanted, const Cluster& cluster,
                std::vector<Traffic>& traffic, TransitionCost& cost) {
  for (const DeviceId taker : wanted) {
    if (std::binary_search(holders.begin(), holders.end(), taker)) continue;
    const auto key = [&](DeviceId giver) {
      return std::tuple(time_of(size, cluster.link(giver, taker)), traffic[giver.index()].sends,
                        giver);
    };
    const DeviceId giver = *std::min_element(
        holders.begin(), holders.end(), [&](DeviceId a, DeviceId b) { return key(a) < key(b); });
    const Duration time = time_of(size, cluster.link(giver, taker));
    traffic[giver.index()].sends += time;
    traffic[taker.index()].receives += time;
    cost.moved += size;
  }
}

// Stages on the same devices in the same schedule need no new executors.
bool runs_alike(const Plan& a, const Plan& b) {
  return a.pipelines == b.pipelines && a.schedule == b.schedule &&
         a.micro_batch_size == b.micro_batch_size && a.batch_size == b.batch_size;
}

}  // namespace

std::vector<std::vector<DeviceId>> find_holders(const Plan& plan, std::size_t layers) {
  std::vector<std::set<DeviceId>> holders(layers);
  for (const Pipeline& pipeline : plan.pipelines) {
    for (const Stage& stage : pipeline.stages) {
      for (const LayerRange& range : stage.layers) {
        for (LayerId l = range.first; l <= range.last; ++l.value) {
          holders.at(l.index()).insert(stage.devices.begin(), stage.devices.end());
        }
      }
    }
  }
  std::vector<std::vector<DeviceId>> lists;
  lists.reserve(layers);
  for (const std::set<DeviceId>& set : holders) lists.emplace_back(set.begin(), set.end());
  return lists;
}

TransitionCost predict_transition(const Plan& from, const Plan& to, const ModelProfile& profile,
                                  const Cluster& cluster, const Activity& trained,
                                  const TransitionOverhead& overhead) {
  if (runs_alike(from, to)) return {};
  const std::vector<std::vector<DeviceId>> before = find_holders(from, profile.layers.size());
  const std::vector<std::vector<DeviceId>> after = find_holders(to, profile.layers.size());
  std::vector<Traffic> traffic(cluster.devices.size());
  TransitionCost cost;
  for (std::size_t l = 0; l < profile.layers.size(); ++l) {
    ENSURE(!before[l].empty(), "every layer is held somewhere");
    const Layer& layer = profile.layers[l];
    Bytes size = layer.parameters;
    if (trained.layers[l].weight_gradient) size += layer.optimizer_state;
    if (size.count > 0) move_layer(size, before[l], after[l], cluster, traffic, cost);
  }
  for (const Traffic& device : traffic) {
    cost.move = std::max({cost.move, device.sends, device.receives});
  }
  cost.total = overhead.plan + cost.move + overhead.start;
  return cost;
}

}  // namespace frazil
