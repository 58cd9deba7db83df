#include "exec/train/plans/present_devices.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>

namespace frazil {
namespace {

std::optional<DeviceId> place_of(const std::vector<DeviceId>& devices, DeviceId device) {
  const auto found = std::lower_bound(devices.begin(), devices.end(), device);
  if (found == devices.end() || *found != device) return std::nullopt;
  return DeviceId{static_cast<std::size_t>(found - devices.begin())};
}

}  // namespace

Cluster keep_devices(const Cluster& cluster, const std::vector<DeviceId>& devices) {
  Cluster kept = cluster;
  kept.devices.clear();
  for (const DeviceId device : devices) kept.devices.push_back(cluster.devices[device.index()]);
  kept.links.clear();
  for (DirectedLink link : cluster.links) {
    const std::optional<DeviceId> from = place_of(devices, link.from);
    const std::optional<DeviceId> to = place_of(devices, link.to);
    if (from && to) kept.links.push_back({*from, *to, link.link});
  }
  return kept;
}

Plan on_devices(const Plan& plan, const std::vector<DeviceId>& devices) {
  Plan placed = plan;
  for (Pipeline& pipeline : placed.pipelines) {
    for (Stage& stage : pipeline.stages) {
      for (DeviceId& device : stage.devices) device = devices.at(device.index());
    }
  }
  if (auto* const lists = std::get_if<ExplicitSchedule>(&placed.schedule)) {
    std::vector<std::vector<Action>> moved(devices.empty() ? 0 : devices.back().index() + 1);
    for (std::size_t d = 0; d < lists->devices.size(); ++d) {
      moved.at(devices.at(d).index()) = std::move(lists->devices[d]);
    }
    lists->devices = std::move(moved);
  }
  return placed;
}

Plan from_devices(const Plan& plan, const std::vector<DeviceId>& devices) {
  const DeviceId last = devices.back();
  std::vector<DeviceId> places(last.index() + 1);
  for (std::size_t i = 0; i < devices.size(); ++i) places[devices[i].index()] = DeviceId{i};
  Plan placed = plan;
  if (auto* const lists = std::get_if<ExplicitSchedule>(&placed.schedule)) {
    std::vector<std::vector<Action>> moved;
    lists->devices.resize(last.index() + 1);
    for (const DeviceId device : devices)
      moved.push_back(std::move(lists->devices[device.index()]));
    lists->devices = std::move(moved);
  }
  for (Pipeline& pipeline : placed.pipelines) {
    for (Stage& stage : pipeline.stages) {
      for (DeviceId& device : stage.devices) device = places.at(device.index());
    }
  }
  return placed;
}

}  // namespace frazil
