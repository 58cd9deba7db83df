#pragma once
// CostScales are what a run has found its devices and layers to take, beside what its profile and
// cluster say, in millionths. scaled() gives the profile and the cluster that say so themselves, so
// that everything that plans, simulates and prices for a Setting does it with measured costs.

#include <cstdint>
#include <vector>

#include "planner/drift/attribute_drift.h"
#include "profiles/cluster.h"
#include "profiles/model_profile.h"

namespace frazil {

struct CostScales {
  std::vector<std::int64_t> device_ppm;  // by device
  std::vector<std::int64_t> layer_ppm;   // by layer
  friend bool operator==(const CostScales&, const CostScales&) = default;
};

// Returns scales that change nothing.
CostScales no_scales(int devices, int layers);
// Returns the scales with what has drifted since. Each stays within [1, kLargestTimePpm].
CostScales with_drift(CostScales scales, const DriftFactors& drift);

// Returns the profile with the F, I and W of each layer scaled; updates, bytes and structure stay,
// and with these the model's hash. Times are rounded down to whole ns and end at kLargestQuantity.
ModelProfile scaled(ModelProfile profile, const CostScales& scales);
// Returns the cluster with the time_ppm of each device scaled. Overheads stay: they are the host's.
Cluster scaled(Cluster cluster, const CostScales& scales);

}  // namespace frazil
