#include "planner/drift/attribute_drift.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "profiles/error.h"

namespace frazil {
namespace {

// Returns the smallest change such that at least half the weight lies at or below it.
double weighted_median(std::vector<std::pair<double, double>> changes) {
  std::sort(changes.begin(), changes.end());
  double all = 0;
  for (const auto& [change, weight] : changes) all += weight;
  double below = 0;
  for (const auto& [change, weight] : changes) {
    below += weight;
    if (2 * below >= all) return change;
  }
  return 0;
}

// Returns the median; of the two middle ones of an even number that which is nearer to 0.
double common_change(const std::map<DeviceId, double>& changes) {
  if (changes.empty()) return 0;
  std::vector<double> sorted;
  sorted.reserve(changes.size());
  for (const auto& [device, change] : changes) sorted.push_back(change);
  std::sort(sorted.begin(), sorted.end());
  const double low = sorted[(sorted.size() - 1) / 2];
  const double high = sorted[sorted.size() / 2];
  return std::abs(low) <= std::abs(high) ? low : high;
}

// What most of the work of each device has changed by, of devices on which a layer is outside.
std::map<DeviceId, double> find_usual_changes(const std::vector<CostChange>& changes) {
  std::map<DeviceId, std::vector<std::pair<double, double>>> layers;
  std::map<DeviceId, double> usual;
  for (const CostChange& change : changes) {
    if (!change.layer) continue;
    layers[change.device].emplace_back(change.change, change.weight);
    if (change.is_outside) usual[change.device] = 0;
  }
  for (auto& [device, most] : usual) most = weighted_median(layers[device]);
  return usual;
}

double mean_change(const std::vector<double>& changes) {
  double sum = 0;
  for (const double change : changes) sum += change;
  return sum / static_cast<double>(changes.size());
}

// Returns the change less its noise, and none where it is all noise.
double towards_none(double change, double noise) {
  return std::copysign(std::max(0.0, std::abs(change) - noise), change);
}

template <class Key>
std::string describe_largest(const std::map<Key, double>& changes, const char* noun) {
  const auto largest = std::max_element(
      changes.begin(), changes.end(),
      [](const auto& a, const auto& b) { return std::abs(a.second) < std::abs(b.second); });
  if (largest == changes.end()) return "";
  return fmt::format("{} {} takes {:.2f} x", noun, largest->first.value, std::exp(largest->second));
}

void multiply_scale(std::int64_t& ppm, double factor) {
  ppm = multiply_ppm(ppm,
                     std::llround(std::clamp(factor * static_cast<double>(kMillion), 1.0, 1e12)));
}

}  // namespace

Drift attribute_drift(const std::vector<CostChange>& changes, int devices) {
  const std::map<DeviceId, double> usual = find_usual_changes(changes);
  std::map<LayerId, std::vector<double>> of_layers;
  std::map<LayerId, std::vector<double>> least_of_layers;
  std::map<DeviceId, double> of_devices;
  std::map<DeviceId, double> noise;
  for (const CostChange& change : changes) {
    const auto most = usual.find(change.device);
    if (!change.layer) {
      of_devices[change.device] = most == usual.end() ? change.change : most->second;
      noise[change.device] = change.noise;
    } else if (change.is_outside && std::abs(change.change - most->second) > change.noise) {
      of_layers[*change.layer].push_back(change.change - most->second);
      least_of_layers[*change.layer].push_back(
          towards_none(change.change - most->second, change.noise));
    }
  }
  const std::vector<double> none(static_cast<std::size_t>(devices), 1.0);
  Drift drift{.now = {none, {}}, .least = {none, {}}, .what = {}};
  std::map<LayerId, double> told_layers;
  for (const auto& [layer, some] : of_layers) {
    told_layers[layer] = mean_change(some);
    drift.now.layers[layer] = std::exp(told_layers[layer]);
    drift.least.layers[layer] = std::exp(mean_change(least_of_layers[layer]));
  }
  const double common = common_change(of_devices);
  std::map<DeviceId, double> told_devices;
  for (const auto& [device, change] : of_devices) {
    const double own = change - common;
    drift.now.devices.at(device.index()) = std::exp(own);
    drift.least.devices.at(device.index()) = std::exp(towards_none(own, noise[device]));
    if (std::abs(own) > noise[device]) told_devices[device] = own;
  }
  drift.what = describe_largest(told_layers, "layer");
  const std::string device = describe_largest(told_devices, "device");
  if (!drift.what.empty() && !device.empty()) drift.what += ", ";
  drift.what += device;
  return drift;
}

CostScales with_drift(CostScales scales, const DriftFactors& drift) {
  ENSURE(drift.devices.size() == scales.device_ppm.size(), "a drift of these devices");
  for (std::size_t d = 0; d < drift.devices.size(); ++d) {
    multiply_scale(scales.device_ppm[d], drift.devices[d]);
  }
  for (const auto& [layer, factor] : drift.layers) {
    multiply_scale(scales.layer_ppm.at(layer.index()), factor);
  }
  return scales;
}

}  // namespace frazil
