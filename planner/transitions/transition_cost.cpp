#include "planner/transitions/transition_cost.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "planner/plan/plan_topology.h"
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

Transitions::Transitions(const std::vector<Plan>& plans, Setting setting)
    : plans_(plans), setting_(setting) {
  for (const Plan& plan : plans_) {
    holders_.push_back(find_holding_devices(plan, setting.profile().layers.size()));
    for (const std::vector<DeviceId>& holders : holders_.back()) {
      ENSURE(!holders.empty(), "every layer is held somewhere");
    }
  }
  find_links();
  for (std::size_t from = 0; from < plans_.size(); ++from) {
    for (std::size_t to = 0; to < plans_.size(); ++to) changes_.push_back(find_change(from, to));
  }
}

void Transitions::find_links() {
  const Cluster& cluster = setting_.cluster();
  const std::size_t devices = cluster.devices.size();
  for (std::size_t giver = 0; giver < devices; ++giver) {
    for (std::size_t taker = 0; taker < devices; ++taker) {
      const Link link = cluster.link(DeviceId{giver}, DeviceId{taker});
      const auto known = std::find(links_.begin(), links_.end(), link);
      link_at_.push_back(static_cast<std::size_t>(known - links_.begin()));
      if (known == links_.end()) links_.push_back(link);
    }
  }
}

Transitions::Change Transitions::find_change(std::size_t from, std::size_t to) const {
  Change change{runs_alike(plans_[from], plans_[to]), {}};
  if (change.alike) return change;
  std::vector<std::vector<Receipt>> by_taker(setting_.cluster().devices.size());
  for (std::size_t l = 0; l < setting_.profile().layers.size(); ++l) {
    const auto layer = static_cast<int>(l);
    const std::vector<DeviceId>& before = holders_[from][l];
    for (const DeviceId taker : holders_[to][l]) {
      if (std::binary_search(before.begin(), before.end(), taker)) continue;
      std::vector<Receipt>& own = by_taker[taker.index()];
      if (own.empty() || own.back().end != layer) own.push_back({taker, layer, layer});
      ++own.back().end;
    }
  }
  for (const std::vector<Receipt>& own : by_taker) {
    change.receipts.insert(change.receipts.end(), own.begin(), own.end());
  }
  return change;
}

Transitions::StatePrices Transitions::price(const Activity& trained) const {
  StatePrices prices;
  prices.fastest.push_back(Duration{0});
  const std::vector<Layer>& layers = setting_.profile().layers;
  for (std::size_t l = 0; l < layers.size(); ++l) {
    StatePrices::OfLayer price;
    price.size = layers[l].parameters;
    if (trained.layers[l].weight_gradient) price.moments = layers[l].optimizer_state;
    price.size += price.moments;
    Duration fastest{0};
    if (price.size.count > 0) {
      for (const Link& link : links_) price.over.push_back(time_of(price.size, link));
      fastest = *std::min_element(price.over.begin(), price.over.end());
    }
    prices.fastest.push_back(prices.fastest.back() + fastest);
    prices.layers.push_back(std::move(price));
  }
  return prices;
}

Duration Transitions::at_least(std::size_t from, std::size_t to, const StatePrices& prices,
                               const TransitionOverhead& overhead) const {
  const Change& change = changes_[from * plans_.size() + to];
  if (change.alike) return Duration{0};
  const Duration given = overhead.plan + overhead.move + overhead.start;
  if (overhead.memory) return given;
  Duration longest{0};
  Duration own{0};
  DeviceId taker;
  for (const Receipt& receipt : change.receipts) {
    if (receipt.taker != taker) own = Duration{0};
    taker = receipt.taker;
    own += prices.fastest[static_cast<std::size_t>(receipt.end)] -
           prices.fastest[static_cast<std::size_t>(receipt.first)];
    longest = std::max(longest, own);
  }
  return given + longest;
}

TransitionCost Transitions::predict(std::size_t from, std::size_t to, const StatePrices& prices,
                                    const TransitionOverhead& overhead) const {
  if (changes_[from * plans_.size() + to].alike) return {};
  if (overhead.memory) return predict_here(from, to, prices, overhead);
  const std::size_t devices = setting_.cluster().devices.size();
  std::vector<Traffic> traffic(devices);
  TransitionCost cost;
  for (std::size_t l = 0; l < prices.layers.size(); ++l) {
    const StatePrices::OfLayer& price = prices.layers[l];
    if (price.size.count == 0) continue;
    const std::vector<DeviceId>& holders = holders_[from][l];
    auto own = holders.begin();
    for (const DeviceId taker : holders_[to][l]) {
      while (own != holders.end() && *own < taker) ++own;
      if (own != holders.end() && *own == taker) continue;
      const auto time = [&](DeviceId giver) {
        return price.over[link_at_[giver.index() * devices + taker.index()]];
      };
      // Holders ascend, so that the smallest of equally good ones stays.
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
  cost.move += overhead.move;
  cost.total = overhead.plan + cost.move + overhead.start;
  return cost;
}

TransitionCost Transitions::predict_here(std::size_t from, std::size_t to,
                                         const StatePrices& prices,
                                         const TransitionOverhead& overhead) const {
  const Activity active = find_activity(setting_.profile(), plans_[to].mask);
  TransitionCost cost;
  std::vector<Bytes> copied(setting_.cluster().devices.size());
  Bytes copied_by_all;
  for (std::size_t l = 0; l < prices.layers.size(); ++l) {
    const std::vector<DeviceId>& before = holders_[from][l];
    const std::vector<DeviceId>& after = holders_[to][l];
    std::vector<DeviceId> takers;
    std::set_difference(after.begin(), after.end(), before.begin(), before.end(),
                        std::back_inserter(takers));
    const std::size_t givers = before.size() + takers.size() - after.size();
    const StatePrices::OfLayer& price = prices.layers[l];
    const Bytes size = active.layers[l].weight_gradient ? price.size : price.size - price.moments;
    cost.moved += size * static_cast<std::int64_t>(takers.size());
    for (std::size_t t = givers; t < takers.size(); ++t) {
      copied[takers[t].index()] += size;
      copied_by_all += size;
    }
  }
  cost.move = copied_by_all / overhead.memory->copied_together;
  for (const Bytes own : copied) {
    cost.move = std::max(cost.move, own / overhead.memory->copied_alone);
  }
  cost.move += overhead.move;
  cost.total =
      overhead.plan + cost.move + overhead.start + hashed(plans_[to]) / overhead.memory->hashed;
  return cost;
}

Bytes Transitions::hashed(const Plan& plan) const {
  Bytes bytes;
  if (!plan.cache_frozen_prefix) return bytes;
  const ModelProfile& profile = setting_.profile();
  const int cached = find_activity(profile, plan).cached;
  for (int l = 0; l < cached; ++l) bytes += profile.layers[static_cast<std::size_t>(l)].parameters;
  return bytes;
}

TransitionCost price_transition(const Plan& from, const Plan& to, Setting setting,
                                const Activity& trained, const TransitionOverhead& overhead) {
  const std::vector<Plan> plans{from, to};
  const Transitions transitions(plans, setting);
  return transitions.predict(0, 1, transitions.price(trained), overhead);
}

}  // namespace frazil
