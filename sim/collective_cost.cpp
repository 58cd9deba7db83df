#include "sim/collective_cost.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "profiles/error.h"
#include "profiles/processes.h"

namespace frazil {
namespace {

void slow_to(Link& slowest, const Link& link) {
  slowest.latency = std::max(slowest.latency, link.latency);
  if (link.bandwidth.count == 0) {
    return;
  }
  const bool unlimited = slowest.bandwidth.count == 0;
  slowest.bandwidth = unlimited ? link.bandwidth : std::min(slowest.bandwidth, link.bandwidth);
}

// Returns the largest latency and the smallest bandwidth between any two of the devices. A pair
// without a listed link has that of its class. Requires: devices differ.
Link slowest_link(const std::vector<DeviceId>& devices, const Cluster& cluster) {
  if (cluster.links.empty() && cluster.link_classes.empty()) {
    return cluster.default_link;
  }
  std::vector<bool> is_inside(cluster.devices.size(), false);
  for (const DeviceId device : devices) {
    is_inside.at(device.index()) = true;
  }
  Link slowest;
  PairCounts unlisted = count_pairs(cluster, devices);
  for (const DirectedLink& link : cluster.links) {
    if (is_inside[link.from.index()] && is_inside[link.to.index()]) {
      slow_to(slowest, link.link);
      --unlisted[static_cast<std::size_t>(cluster.class_of(link.from, link.to))];
    }
  }
  for (const LinkClass each : kLinkClasses) {
    if (unlisted[static_cast<std::size_t>(each)] > 0) slow_to(slowest, cluster.usual_link(each));
  }
  return slowest;
}

// Returns the cost of `rounds` times round the ring.
CollectiveCost ring_cost(std::int64_t devices, Bytes share, int rounds) {
  const std::int64_t steps = rounds * (devices - 1);
  const Bytes around = share * steps;
  return {
      .steps = static_cast<int>(steps), .sent_by_busiest = around, .received_by_busiest = around};
}

// The root receives a message in every step of the reduce and sends one in every step of the
// broadcast.
CollectiveCost tree_cost(std::int64_t devices, Bytes size) {
  const auto depth = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(devices - 1)));
  return {.steps = 2 * depth, .sent_by_busiest = size * depth, .received_by_busiest = size * depth};
}

CollectiveCost exact_tree_cost(std::int64_t devices, Bytes share, const std::vector<int>& owned) {
  const std::int64_t all = std::accumulate(owned.begin(), owned.end(), std::int64_t{0});
  const auto [fewest, most] = std::minmax_element(owned.begin(), owned.end());
  ENSURE(*fewest >= 0, "a negative number of gradient nodes");
  return {.steps = static_cast<int>(2 * (devices - 1)),
          .sent_by_busiest = share * ((devices - 1) * (*most + std::int64_t{1})),
          .received_by_busiest = share * (all - *fewest + devices - 1)};
}

// Every device sends its share to every other device; in a partial gather `owned` tells how many
// shares each device sends and receives.
CollectiveCost gather_cost(std::int64_t devices, Bytes share, const std::vector<int>& owned) {
  if (owned.empty()) return ring_cost(devices, share, 1);
  const auto middle = owned.begin() + devices;
  const int sent = *std::max_element(owned.begin(), middle);
  const int received = *std::max_element(middle, owned.end());
  ENSURE(*std::min_element(owned.begin(), owned.end()) >= 0, "a negative number of shares");
  return {.steps = std::max(sent, received),
          .sent_by_busiest = share * sent,
          .received_by_busiest = share * received};
}

}  // namespace

Bytes share_among(Bytes size, std::size_t devices) {
  const auto parts = static_cast<std::int64_t>(devices);
  return Bytes{size.count / parts + (size.count % parts > 0 ? 1 : 0)};
}

CollectiveCost collective_cost(const Collective& collective, const Cluster& cluster) {
  const auto devices = static_cast<std::int64_t>(collective.devices.size());
  ENSURE(devices >= 1 && collective.size.count >= 0, "a collective of some devices and bytes");
  const bool is_exact = collective.kind == CollectiveKind::kExactTreeAllReduce;
  ENSURE(!is_exact || collective.owned.size() == collective.devices.size(),
         "gradient nodes of every device");
  const bool is_in_part =
      collective.kind == CollectiveKind::kAllGather && !collective.owned.empty();
  ENSURE(!is_in_part || collective.owned.size() == 2 * collective.devices.size(),
         "shares that every device sends and receives");
  if (devices == 1) {
    return {};
  }

  const Link link = slowest_link(collective.devices, cluster);
  const Bytes share = share_among(collective.size, collective.devices.size());
  CollectiveCost cost;
  Bytes in_turn;
  switch (collective.kind) {
    case CollectiveKind::kRingAllReduce:
      cost = ring_cost(devices, share, 2);
      in_turn = cost.sent_by_busiest;
      break;
    case CollectiveKind::kAllGather:
      cost = gather_cost(devices, share, collective.owned);
      in_turn = std::max(cost.sent_by_busiest, cost.received_by_busiest);
      break;
    case CollectiveKind::kTreeAllReduce:
      cost = tree_cost(devices, collective.size);
      in_turn = cost.sent_by_busiest + cost.received_by_busiest;
      break;
    case CollectiveKind::kExactTreeAllReduce:
      // No owner receives more than the owner of the most nodes sends.
      cost = exact_tree_cost(devices, share, collective.owned);
      in_turn = cost.sent_by_busiest;
      break;
  }
  cost.time = cost.steps * link.latency + in_turn / link.bandwidth;
  return cost;
}

}  // namespace frazil
