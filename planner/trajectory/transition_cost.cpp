#include "planner/trajectory/transition_cost.h"

#include <algorithm>
#include <set>
#include <utility>

#include "profiles/error.h"

namespace frazil {
namespace {

struct Traffic {
  Duration sends{0};
  Duration receives{0};
};

Duration time_of(Bytes size, const Link& link) { return size / link.bandwidth + link.latency; }

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

Transitions::Transitions(const std::vector<const Plan*>& plans, const ModelProfile& profile,
                         const Cluster& cluster)
    : plans_(plans), profile_(profile), cluster_(cluster) {
  for (const Plan* plan : plans_) {
    holders_.push_back(find_holders(*plan, profile.layers.size()));
    for (const std::vector<DeviceId>& holders : holders_.back()) {
      ENSURE(!holders.empty(), "every layer is held somewhere");
    }
  }
  find_links();
}

void Transitions::find_links() {
  const std::size_t devices = cluster_.devices.size();
  for (std::size_t giver = 0; giver < devices; ++giver) {
    for (std::size_t taker = 0; taker < devices; ++taker) {
      const Link link = cluster_.link(DeviceId{giver}, DeviceId{taker});
      const auto known = std::find(links_.begin(), links_.end(), link);
      link_at_.push_back(static_cast<std::size_t>(known - links_.begin()));
      if (known == links_.end()) links_.push_back(link);
    }
  }
}

std::vector<Transitions::LayerPrice> Transitions::price_layers(const Activity& trained) const {
  std::vector<LayerPrice> prices;
  for (std::size_t l = 0; l < profile_.layers.size(); ++l) {
    LayerPrice price;
    price.size = profile_.layers[l].parameters;
    if (trained.layers[l].weight_gradient) price.size += profile_.layers[l].optimizer_state;
    for (const Link& link : links_) price.over.push_back(time_of(price.size, link));
    prices.push_back(std::move(price));
  }
  return prices;
}

TransitionCost Transitions::move(const Holders& before, const Holders& after,
                                 const std::vector<LayerPrice>& prices) const {
  const std::size_t devices = cluster_.devices.size();
  std::vector<Traffic> traffic(devices);
  TransitionCost cost;
  for (std::size_t l = 0; l < prices.size(); ++l) {
    const LayerPrice& price = prices[l];
    if (price.size.count == 0) continue;
    const std::vector<DeviceId>& holders = before[l];
    auto own = holders.begin();
    for (const DeviceId taker : after[l]) {
      while (own != holders.end() && *own < taker) ++own;
      if (own != holders.end() && *own == taker) continue;
      const auto time = [&](DeviceId giver) {
        return price.over[link_at_[giver.index() * devices + taker.index()]];
      };
      // Holders ascend, so that of equal ones the smaller stays.
      DeviceId best = holders.front();
      for (const DeviceId giver : holders) {
        const Duration more = time(giver) - time(best);
        const bool sent_less = traffic[giver.index()].sends < traffic[best.index()].sends;
        if (more < Duration{0} || (more == Duration{0} && sent_less)) best = giver;
      }
      traffic[best.index()].sends += time(best);
      traffic[taker.index()].receives += time(best);
      cost.moved += price.size;
    }
  }
  for (const Traffic& device : traffic) {
    cost.move = std::max({cost.move, device.sends, device.receives});
  }
  return cost;
}

std::vector<std::vector<TransitionCost>> Transitions::predict_all(
    const Activity& trained, const TransitionOverhead& overhead) const {
  const std::vector<LayerPrice> prices = price_layers(trained);
  std::vector<std::vector<TransitionCost>> costs;
  for (std::size_t from = 0; from < plans_.size(); ++from) {
    costs.emplace_back(plans_.size());
    for (std::size_t to = 0; to < plans_.size(); ++to) {
      if (runs_alike(*plans_[from], *plans_[to])) continue;
      TransitionCost& cost = costs[from][to];
      cost = move(holders_[from], holders_[to], prices);
      cost.total = overhead.plan + cost.move + overhead.start;
    }
  }
  return costs;
}

TransitionCost predict_transition(const Plan& from, const Plan& to, const ModelProfile& profile,
                                  const Cluster& cluster, const Activity& trained,
                                  const TransitionOverhead& overhead) {
  return Transitions({&from, &to}, profile, cluster).predict_all(trained, overhead)[0][1];
}

}  // namespace frazil
