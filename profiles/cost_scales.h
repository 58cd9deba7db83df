#pragma once
// CostScales are what a run has found its devices and layers to take, beside what its profile and
// cluster say, in millionths. scaled() gives the profile and the cluster that say so themselves, so
// that everything that plans, simulates and prices for a Setting does it with measured costs.

#include <cstdint>
#include <vector>

#include "profiles/cluster.h"
#include "profiles/model_profile.h"

namespace frazil {

// Both lists empty: nothing is known beside the profile and the cluster, which are then meant.
struct CostScales {
  std::vector<std::int64_t> device_ppm = {};  // by device, each in [1, kLargestTimePpm]
  std::vector<std::int64_t> layer_ppm = {};   // by layer, likewise
  bool is_empty() const { return device_ppm.empty() && layer_ppm.empty(); }
  friend bool operator==(const CostScales&, const CostScales&) = default;
};

// Returns scales that change nothing.
CostScales no_scales(int devices, int layers);
// Returns true if the scales change nothing: they are empty, or each is a million.
bool changes_nothing(const CostScales& scales);
// Returns the scale of what takes `by_ppm` of what takes `ppm`, within [1, kLargestTimePpm].
std::int64_t multiply_ppm(std::int64_t ppm, std::int64_t by_ppm);

// Returns the profile with the F, I and W of each layer scaled; updates, bytes and structure stay,
// and with these the model's hash. Times are rounded down to whole ns and end at kLargestQuantity.
// Requires: a scale for every layer; and below for every device.
ModelProfile scaled(ModelProfile profile, const CostScales& scales);
// Returns the cluster with the time_ppm of each device scaled. Overheads stay: they are the host's.
Cluster scaled(Cluster cluster, const CostScales& scales);

}  // namespace frazil
