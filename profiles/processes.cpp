#include "profiles/processes.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "profiles/error.h"

namespace frazil {
namespace {

using ProcessKey = std::pair<HostId, ProcessId>;

ProcessKey key_of(const Device& device) { return {device.host, device.process}; }

std::int64_t pairs_among(std::int64_t devices) { return devices * (devices - 1); }

}  // namespace

bool tells_processes(const Cluster& cluster) {
  return cluster.commit_round.has_value() || !cluster.link_classes.empty() ||
         std::any_of(cluster.devices.begin(), cluster.devices.end(),
                     [](const Device& device) { return device.process != kUnnamedProcess; });
}

bool span_processes(const Cluster& cluster, std::span<const DeviceId> devices) {
  if (devices.empty()) return false;
  const Device& first = cluster.devices[devices.front().index()];
  return std::any_of(devices.begin(), devices.end(),
                     [&](DeviceId device) {
                       return !share_process(first, cluster.devices[device.index()]);
                     }) &&
         tells_processes(cluster);
}

int count_processes(const Cluster& cluster) {
  if (!tells_processes(cluster)) return 1;
  std::set<ProcessKey> processes;
  for (const Device& device : cluster.devices) processes.insert(key_of(device));
  return static_cast<int>(processes.size());
}

int count_in_largest_process(const Cluster& cluster) {
  if (!tells_processes(cluster)) return static_cast<int>(cluster.devices.size());
  std::map<ProcessKey, int> sizes;
  int largest = 0;
  for (const Device& device : cluster.devices) {
    largest = std::max(largest, ++sizes[key_of(device)]);
  }
  return largest;
}

PairCounts count_pairs(const Cluster& cluster, std::span<const DeviceId> devices) {
  std::vector<ProcessKey> keys;
  keys.reserve(devices.size());
  for (const DeviceId device : devices) keys.push_back(key_of(cluster.devices[device.index()]));
  std::sort(keys.begin(), keys.end());
  std::int64_t in_processes = 0;
  std::int64_t on_hosts = 0;
  std::int64_t of_process = 0;
  std::int64_t of_host = 0;
  for (std::size_t at = 0; at < keys.size(); ++at) {
    ++of_process;
    ++of_host;
    const bool is_last = at + 1 == keys.size();
    if (is_last || keys[at + 1] != keys[at])
      in_processes += pairs_among(std::exchange(of_process, 0));
    if (is_last || keys[at + 1].first != keys[at].first)
      on_hosts += pairs_among(std::exchange(of_host, 0));
  }
  const std::int64_t all = pairs_among(static_cast<std::int64_t>(devices.size()));
  return {in_processes, on_hosts - in_processes, all - on_hosts};
}

std::vector<DeviceId> all_devices(const Cluster& cluster) {
  std::vector<DeviceId> devices;
  devices.reserve(cluster.devices.size());
  for (std::size_t d = 0; d < cluster.devices.size(); ++d) devices.emplace_back(d);
  return devices;
}

void deal_processes(Cluster& cluster, int processes, const std::string& flag) {
  std::map<HostId, std::vector<std::size_t>> on_host;
  for (std::size_t d = 0; d < cluster.devices.size(); ++d) {
    on_host[cluster.devices[d].host].push_back(d);
  }
  const auto hosts = static_cast<int>(on_host.size());
  if (processes % hosts != 0) {
    throw InputError(flag, 0, fmt::format("{} processes on {} hosts", processes, hosts),
                     "equally many on each host, as a process is on one host");
  }
  const auto of_host = static_cast<std::size_t>(processes / hosts);
  std::int32_t first = 0;
  for (const auto& [host, devices] : on_host) {
    if (devices.size() < of_host) {
      throw InputError(flag, 0,
                       fmt::format("{} processes for {} devices of host \"{}\"", of_host,
                                   devices.size(), cluster.hosts[host.index()].name),
                       "at least one device for each process");
    }
    const std::size_t share = devices.size() / of_host;
    const std::size_t rest = devices.size() % of_host;
    for (std::size_t i = 0; i < devices.size(); ++i) {
      const std::size_t in_larger = rest * (share + 1);
      const std::size_t own = i < in_larger ? i / (share + 1) : rest + (i - in_larger) / share;
      cluster.devices[devices[i]].process = ProcessId(first + static_cast<std::int32_t>(own));
    }
    first += static_cast<std::int32_t>(of_host);
  }
}

}  // namespace frazil
