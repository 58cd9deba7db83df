#include "sim/fair_shares.h"

#include <algorithm>
#include <numeric>

#include "profiles/error.h"
#include "profiles/units.h"

namespace frazil {
namespace {

// Capacities end at 2^53 and denominators at 2^31, so every product below fits 127 bits.
bool is_less(const Rate& a, const Rate& b) { return a.amount * b.per < b.amount * a.per; }

// Returns amount / per in lowest terms; where the denominator would exceed kLargestPer, rounds down
// and sets `rounded`. Requires: amount >= 0.
Rate reduce(WideInteger amount, std::int64_t per, bool& rounded) {
  if (per == 1) return {amount, 1};
  const auto rest = static_cast<std::int64_t>(amount % per);
  const std::int64_t common = std::gcd(rest, per);
  amount /= common;
  per /= common;
  if (per <= kLargestPer) return {amount, per};
  rounded = true;
  const WideInteger whole = amount / per;
  const auto part = static_cast<std::int64_t>(amount % per);
  const auto floor = static_cast<std::int64_t>(WideInteger{part} * kLargestPer / per);
  return {whole * kLargestPer + floor, kLargestPer};
}

Rate subtract(const Rate& from, const Rate& rate, bool& rounded) {
  if (from.per == rate.per) return {from.amount - rate.amount, from.per};
  const std::int64_t per = std::lcm(from.per, rate.per);
  return reduce(from.amount * (per / from.per) - rate.amount * (per / rate.per), per, rounded);
}

}  // namespace

FairShares::FairShares(std::span<const std::int64_t> capacities) : resources_(capacities.size()) {
  for (std::size_t i = 0; i < capacities.size(); ++i) {
    ENSURE(capacities[i] > 0 && capacities[i] <= kLargestQuantity, "capacities above 0");
    resources_[i].capacity = capacities[i];
  }
}

void FairShares::join(FlowId flow, std::int64_t most, std::span<const ResourceId> resources) {
  if (flow >= flows_.size()) flows_.resize(flow + 1);
  ENSURE(flows_[flow].most == 0 && most > 0, "a flow that is not there yet and wants something");
  flows_[flow] = {.most = most, .resources = resources, .rate = {}, .seen = 0, .open = false};
  for (const ResourceId id : resources) {
    resources_[id].wanted += most;
    resources_[id].flows.push_back(flow);
  }
  touched_.push_back(flow);
}

void FairShares::leave(FlowId id) {
  Flow& flow = flows_[id];
  for (const ResourceId resource_id : flow.resources) {
    Resource& resource = resources_[resource_id];
    std::erase(resource.flows, id);
    if (is_scarce(resource)) {
      touched_.insert(touched_.end(), resource.flows.begin(), resource.flows.end());
    }
    resource.wanted -= flow.most;
  }
  flow.most = 0;
}

std::span<const FlowId> FairShares::settle() {
  changed_.clear();
  if (!touched_.empty()) {
    reach_all();
    share_out();
    touched_.clear();
  }
  return changed_;
}

void FairShares::reach(FlowId id) {
  Flow& flow = flows_[id];
  if (flow.most == 0 || flow.seen == round_) return;
  flow.seen = round_;
  flow.open = true;
  reached_.push_back(id);
}

// Collects all flows whose rate may change: the touched flows, and all that they reach over scarce
// resources.
void FairShares::reach_all() {
  ++round_;
  reached_.clear();
  scarce_.clear();
  for (const FlowId id : touched_) reach(id);
  for (std::size_t i = 0; i < reached_.size(); ++i) {
    for (const ResourceId id : flows_[reached_[i]].resources) {
      Resource& resource = resources_[id];
      if (resource.seen == round_ || !is_scarce(resource)) continue;
      resource.seen = round_;
      resource.open = static_cast<std::uint32_t>(resource.flows.size());
      resource.left = {resource.capacity, 1};
      resource.is_level_old = true;
      scarce_.push_back(id);
      for (const FlowId flow : resource.flows) reach(flow);
    }
  }
}

// Gives each reached flow its rate. Levels only rise while flows are fixed at or below the lowest
// level, so the lowest level is looked for again only when a flow could go beyond it.
void FairShares::share_out() {
  std::sort(reached_.begin(), reached_.end(),
            [this](FlowId a, FlowId b) { return flows_[a].most < flows_[b].most; });
  Rate level;
  for (const FlowId id : reached_) {
    const Rate most{flows_[id].most, 1};
    while (flows_[id].open) {
      if (!is_less(level, most)) {
        fix(id, most);
        break;
      }
      const Resource* const fullest = find_fullest();
      level = fullest == nullptr ? Rate{flows_[reached_.back()].most, 1} : fullest->level;
      if (fullest == nullptr || !is_less(level, most)) continue;
      for (const FlowId held_up : fullest->flows) {
        if (flows_[held_up].open) fix(held_up, level);
      }
    }
  }
}

// Returns the resource that is full first when all open flows rise together; null when none fills.
const FairShares::Resource* FairShares::find_fullest() {
  Resource* fullest = nullptr;
  for (const ResourceId id : scarce_) {
    Resource& resource = resources_[id];
    if (resource.open == 0) continue;
    if (resource.is_level_old) {
      resource.level = reduce(resource.left.amount, resource.left.per * resource.open, rounded_);
      resource.is_level_old = false;
    }
    if (fullest == nullptr || is_less(resource.level, fullest->level)) fullest = &resource;
  }
  return fullest;
}

void FairShares::fix(FlowId id, const Rate& rate) {
  Flow& flow = flows_[id];
  flow.open = false;
  for (const ResourceId resource_id : flow.resources) {
    Resource& resource = resources_[resource_id];
    if (resource.seen != round_) continue;
    resource.left = subtract(resource.left, rate, rounded_);
    --resource.open;
    resource.is_level_old = true;
  }
  if (flow.rate == rate) return;
  flow.rate = rate;
  changed_.push_back(id);
}

}  // namespace frazil
