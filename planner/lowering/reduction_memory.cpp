#include "planner/lowering/reduction_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "planner/lowering/footprint.h"
#include "profiles/error.h"

namespace frazil {
namespace {

constexpr std::int64_t kFloatBytes = 4;

__extension__ using Wide = __int128;

Bytes beyond(Wide taken, Bytes held) {
  if (taken > kLargestQuantity) {
    throw InputError("plan", 0,
                     fmt::format("a reduction that takes more than {} bytes", kLargestQuantity),
                     "a reduction of fewer bytes");
  }
  return {std::max<std::int64_t>(0, static_cast<std::int64_t>(taken) - held.count)};
}

// Returns the largest share of an owner that is not `self`. Shares are of n or n + 1 floats, and as
// many are of n + 1 as floats are left over.
Bytes largest_other_share(Bytes size, std::size_t self, std::size_t owners) {
  if (owners < 2) return Bytes{};
  const std::int64_t floats = size.count / kFloatBytes;
  const auto all = static_cast<std::int64_t>(owners);
  const Bytes least{kFloatBytes * (floats / all)};
  const bool has_more = share_of_floats(size, self, owners) > least;
  const std::int64_t others_with_more = floats % all - (has_more ? 1 : 0);
  return least + Bytes{others_with_more > 0 ? kFloatBytes : 0};
}

Wide product(Bytes size, std::size_t times) { return static_cast<Wide>(size.count) * times; }

// Returns the most sums held at once besides the device's own. The executor adds the uses in this
// order, and adds in place as soon as the total is a tensor that no message needs.
int count_sums_beside(const std::vector<LayerId>& uses, const std::set<LayerId>& own,
                      const std::set<LayerId>& sent) {
  int most = 0;
  int total = 0;  // 1: a tensor of its own
  bool may_write = false;
  bool first = true;
  for (const LayerId use : uses) {
    const bool is_own = own.contains(use);
    const int came = is_own ? 0 : 1;
    if (std::exchange(first, false)) {
      total = came;
      may_write = is_own && !sent.contains(use);
      most = total;
      continue;
    }
    most = std::max(most, total + came + (may_write ? 0 : 1));
    if (!std::exchange(may_write, true)) total = 1;
  }
  // Each sum that is sent is replaced by another tensor: one sum by the total, the rest by copies.
  const auto is_sent = [&](LayerId use) { return sent.contains(use); };
  const auto replaced = std::count_if(own.begin(), own.end(), is_sent);
  return std::max(most, replaced > total ? 1 : most);
}

}  // namespace

Bytes share_of_floats(Bytes size, std::size_t part, std::size_t parts) {
  const std::int64_t floats = size.count / kFloatBytes;
  const auto boundary = [&](std::size_t k) {
    const auto all = static_cast<std::int64_t>(parts);
    const auto place = static_cast<std::int64_t>(k);
    return floats / all * place + floats % all * place / all;
  };
  return {kFloatBytes * (boundary(part + 1) - boundary(part))};
}

Bytes find_exact_reduction_memory(Bytes size, const ReceivedSets& received, std::size_t self,
                                  Bytes held) {
  const Bytes share = share_of_floats(size, self, received.owners());
  const auto sets = static_cast<std::size_t>(received.most(self));
  const Wide adding = product(size, received.own(self)) + product(share, sets);
  return std::max(beyond(adding, held), find_gather_memory(size, received.owners(), self, held));
}

Bytes find_gather_memory(Bytes size, std::size_t owners, std::size_t self, Bytes held) {
  const Bytes own = share_of_floats(size, self, owners);
  return beyond(product(size, 1) + own.count + largest_other_share(size, self, owners).count, held);
}

Bytes bound_exact_reduction_memory(Bytes size, std::size_t owners, int own, int received,
                                   Bytes held) {
  const Wide share = size.count / static_cast<std::int64_t>(owners) + kFloatBytes;
  const Wide adding = product(size, static_cast<std::size_t>(own)) + share * received;
  return beyond(std::max(adding, product(size, 1) + 2 * share), held);
}

Bytes find_ring_reduction_memory(Bytes size, Bytes held) { return beyond(product(size, 2), held); }

std::vector<Bytes> find_gather_memory(const ReductionGroup& group, const Plan& plan) {
  const Collective& collective = group.collective;
  const std::vector<int> sets = find_gradient_sets(plan, group.layers.front());
  std::vector<Bytes> memory;
  for (std::size_t self = 0; self < collective.devices.size(); ++self) {
    memory.push_back(find_gather_memory(collective.size, collective.devices.size(), self,
                                        collective.size * sets[collective.devices[self].index()]));
  }
  return memory;
}

std::vector<Bytes> find_reduction_memory(const ReductionGroup& group, const Plan& plan) {
  const Collective& collective = group.collective;
  const Bytes size = collective.size;
  const std::vector<int> sets = find_gradient_sets(plan, group.layers.front());
  std::optional<ReceivedSets> received;
  if (plan.reduction == ReductionMode::kExact) received.emplace(group.nodes, plan.micro_batches());
  std::vector<Bytes> memory;
  for (std::size_t self = 0; self < collective.devices.size(); ++self) {
    const Bytes held = size * sets[collective.devices[self].index()];
    memory.push_back(received ? find_exact_reduction_memory(size, *received, self, held)
                              : find_ring_reduction_memory(size, held));
  }
  return memory;
}

Bytes find_tied_memory(const TiedExchange& exchange, const std::vector<TiedExchange>& exchanges,
                       const Plan& plan, const ModelProfile& profile, DeviceId device) {
  std::set<LayerId> uses;
  std::set<LayerId> sent;
  for (const TiedExchange& each : exchanges) {
    if (each.tied != exchange.tied) continue;
    for (const TiedUse& use : each.uses) uses.insert(use.layer);
    for (const TiedMessage& message : each.messages) {
      uses.insert(message.layer);
      if (message.from == device) sent.insert(message.layer);
    }
  }
  std::set<LayerId> own;
  int sets = 0;
  for (const TiedUse& use : exchange.uses) {
    if (!lies_on(use, device) || !own.insert(use.layer).second) continue;
    sets += find_gradient_sets(plan, use.layer, device);
  }
  const Bytes sum = profile.tied.at(exchange.tied).bytes;
  const int beside = count_sums_beside({uses.rbegin(), uses.rend()}, own, sent);
  return beyond(product(sum, own.size() + static_cast<std::size_t>(beside)), sum * sets);
}

}  // namespace frazil
