#include "sim/sharing.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <variant>

#include "profiles/error.h"
#include "sim/collective_cost.h"

namespace frazil {
namespace {

// Finds what works draw on. A resource gets its number when a work first draws on it.
class Drawing {
 public:
  Drawing(const Cluster& cluster, const Capacities& capacities)
      : cluster_(cluster), capacities_(capacities) {}

  Sharing run(const TaskGraph& graph) {
    const std::vector<Work>& works = graph.works();
    for (WorkId work = 0; work < works.size(); ++work) {
      resources_.clear();
      const std::int64_t rate =
          std::visit([this](const auto& kind) { return draw(kind); }, works[work]);
      if (rate > 0 && !resources_.empty()) sharing_.draw(work, rate, resources_);
    }
    return std::move(sharing_);
  }

 private:
  enum class Kind : std::uint8_t { kOut, kIn, kHostOut, kHostIn, kCores, kLink };

  std::int64_t draw(const Fixed&) const { return 0; }
  std::int64_t draw(const Hop&) const { return 0; }

  std::int64_t draw(const ComputePair& pair) { return draw(pair.first); }

  std::int64_t draw(const Compute& compute) {
    const std::size_t host = host_of(compute.device);
    if (host < capacities_.cores.size()) use({Kind::kCores, host, 0}, capacities_.cores[host]);
    return 1;
  }

  std::int64_t draw(const Transfer& transfer) {
    const std::int64_t bandwidth = cluster_.link(transfer.from, transfer.to).bandwidth.count;
    const std::int64_t out = use(Kind::kOut, transfer.from.index(), capacities_.out);
    const std::int64_t in = use(Kind::kIn, transfer.to.index(), capacities_.in);
    const std::size_t from = host_of(transfer.from);
    const std::size_t to = host_of(transfer.to);
    if (from != to) {
      use(Kind::kHostOut, from, capacities_.host_out);
      use(Kind::kHostIn, to, capacities_.host_in);
    }
    if ((out == 0 || out > bandwidth) && (in == 0 || in > bandwidth)) {
      use({Kind::kLink, transfer.from.index(), transfer.to.index()}, bandwidth);
    }
    return bandwidth;
  }

  std::int64_t draw(const Collective& collective) {
    const CollectiveCost cost = collective_cost(collective, cluster_);
    if (cost.time.count() == 0) return 0;
    std::set<std::size_t> hosts;
    for (const DeviceId device : collective.devices) {
      use(Kind::kOut, device.index(), capacities_.out);
      use(Kind::kIn, device.index(), capacities_.in);
      hosts.insert(host_of(device));
    }
    for (const std::size_t host : hosts) {
      if (hosts.size() == 1) break;
      use(Kind::kHostOut, host, capacities_.host_out);
      use(Kind::kHostIn, host, capacities_.host_in);
    }
    const std::int64_t bytes = std::max(cost.sent_by_busiest, cost.received_by_busiest).count;
    const std::int64_t time = cost.time.count();
    return static_cast<std::int64_t>(
        divide_up(WideInteger{bytes} * 1'000'000'000, WideInteger{time}));
  }

  using Key = std::tuple<Kind, std::size_t, std::size_t>;

  // Draws on a resource unless it is unlimited. Returns the capacity, 0 if unlimited.
  std::int64_t use(Kind kind, std::size_t at, const std::vector<BytesPerSecond>& capacities) {
    const std::int64_t capacity = at < capacities.size() ? capacities[at].count : 0;
    use({kind, at, 0}, capacity);
    return capacity;
  }

  void use(const Key& key, std::int64_t capacity) {
    if (capacity == 0) return;
    const auto [known, is_new] = ids_.try_emplace(key, ResourceId{0});
    if (is_new) known->second = sharing_.add_resource(capacity);
    resources_.push_back(known->second);
  }

  std::size_t host_of(DeviceId device) const {
    ENSURE(device.index() < cluster_.devices.size(), "work names an unknown device");
    return cluster_.devices[device.index()].host.index();
  }

  const Cluster& cluster_;
  const Capacities& capacities_;
  Sharing sharing_;
  std::map<Key, ResourceId> ids_;
  std::vector<ResourceId> resources_;  // the resources of the work at hand
};

BytesPerSecond faster(BytesPerSecond a, BytesPerSecond b) {
  const bool unlimited = a.count == 0 || b.count == 0;
  return unlimited ? BytesPerSecond{0} : std::max(a, b);
}

}  // namespace

ResourceId Sharing::add_resource(std::int64_t capacity) {
  capacities.push_back(capacity);
  return static_cast<ResourceId>(capacities.size() - 1);
}

void Sharing::draw(WorkId work, std::int64_t rate, std::span<const ResourceId> resources) {
  if (work >= draws.size()) draws.resize(work + std::size_t{1});
  draws[work] = {.rate = rate,
                 .first = static_cast<std::uint32_t>(drawn_on.size()),
                 .count = static_cast<std::uint32_t>(resources.size())};
  drawn_on.insert(drawn_on.end(), resources.begin(), resources.end());
}

Capacities find_capacities(const Cluster& cluster) {
  const std::size_t devices = cluster.devices.size();
  Capacities found;
  found.out.resize(devices);
  found.in.resize(devices);
  for (std::size_t from = 0; from < devices; ++from) {
    for (std::size_t to = 0; to < devices; ++to) {
      if (from == to) continue;
      const BytesPerSecond bandwidth = cluster.link(DeviceId{from}, DeviceId{to}).bandwidth;
      const bool first_out = to == (from == 0 ? 1U : 0U);
      const bool first_in = from == (to == 0 ? 1U : 0U);
      found.out[from] = first_out ? bandwidth : faster(found.out[from], bandwidth);
      found.in[to] = first_in ? bandwidth : faster(found.in[to], bandwidth);
    }
  }
  return found;
}

Sharing share(const TaskGraph& graph, const Cluster& cluster, const Capacities& capacities) {
  return Drawing(cluster, capacities).run(graph);
}

std::vector<Meeting> find_meetings(const TaskGraph& graph) {
  std::map<WorkId, std::map<DeviceId, std::vector<TaskId>>> entered;
  for (TaskId task = 0; task < graph.size(); ++task) {
    const WorkId work = graph.work_of()[task];
    const auto* const collective = std::get_if<Collective>(&graph.works()[work]);
    if (collective == nullptr || collective->devices.size() < 2) continue;
    entered[work][graph.lanes()[graph.lane_of()[task]].device].push_back(task);
  }
  std::vector<Meeting> meetings;
  for (const auto& [work, by_device] : entered) {
    const std::size_t times = by_device.begin()->second.size();
    const std::size_t first = meetings.size();
    meetings.resize(first + times);
    for (const auto& [device, tasks] : by_device) {
      ENSURE(tasks.size() == times, "a collective that each of its devices enters equally often");
      for (std::size_t i = 0; i < times; ++i) meetings[first + i].push_back(tasks[i]);
    }
  }
  return meetings;
}

}  // namespace frazil
