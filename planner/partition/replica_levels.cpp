#include "planner/partition/replica_levels.h"

#include <algorithm>
#include <utility>

namespace frazil {

int find_devices_per_host(const Cluster& cluster) {
  const auto devices = static_cast<int>(cluster.devices.size());
  const auto on_first = static_cast<int>(std::count_if(
      cluster.devices.begin(), cluster.devices.end(),
      [&](const Device& device) { return device.host == cluster.devices.front().host; }));
  if (on_first == 1 || devices % on_first != 0) return devices;
  for (int d = 0; d < devices; ++d) {
    const HostId first = cluster.devices[static_cast<std::size_t>(d - d % on_first)].host;
    const bool begins = d % on_first == 0 && d > 0;
    const HostId host = cluster.devices[static_cast<std::size_t>(d)].host;
    if (host != first) return devices;
    if (begins && host == cluster.devices[static_cast<std::size_t>(d) - 1].host) return devices;
  }
  return on_first;
}

std::vector<ReplicaLevel> find_replica_levels(const Cluster& cluster) {
  const auto devices = static_cast<int>(cluster.devices.size());
  const int per_host = find_devices_per_host(cluster);
  const auto bandwidth = [&](int to) {
    return to < devices ? cluster.link(DeviceId{0}, DeviceId{to}).bandwidth : BytesPerSecond{};
  };
  if (per_host == devices) return {{devices, bandwidth(1)}};
  return {{per_host, bandwidth(1)}, {devices / per_host, bandwidth(per_host)}};
}

std::vector<std::vector<DeviceId>> place_replicas(const std::vector<std::vector<int>>& replicas,
                                                  int devices_per_host) {
  std::vector<std::vector<DeviceId>> placed;
  int host = 0;   // first host of the outer stage
  int hosts = 1;  // of the outer stage
  int used = 0;   // devices used on each host of the outer stage
  for (const std::vector<int>& own : replicas) {
    const int inner = own.front();
    const int outer = own.size() > 1 ? own.back() : 1;
    if (!placed.empty() && (outer != hosts || used + inner > devices_per_host)) {
      host += hosts;
      used = 0;
    }
    hosts = outer;
    std::vector<DeviceId>& devices = placed.emplace_back();
    for (int i = 0; i < inner; ++i) {
      for (int h = 0; h < hosts; ++h) {
        devices.emplace_back((host + h) * devices_per_host + used + i);
      }
    }
    used += inner;
  }
  return placed;
}

Stage make_replicated_stage(const std::vector<LayerId>& layers, std::vector<DeviceId> devices) {
  Stage stage;
  stage.devices = std::move(devices);
  for (const LayerId layer : layers) {
    if (!stage.layers.empty() && stage.layers.back().last.value + 1 == layer.value) {
      stage.layers.back().last = layer;
    } else {
      stage.layers.push_back({layer, layer});
    }
  }
  return stage;
}

}  // namespace frazil
