#pragma once
// Says what has drifted, a device or a layer, from the changes of both. A layer that takes longer
// makes its device take longer as well, and a device that takes longer makes all its layers do so.
// Hence
// - what most of a device's work has changed by (the weighted median over its layers) is the
//   device's, if one of its layers stands out, and what is left is that layer's; else what the
//   device's whole time has changed by is the device's;
// - what the devices have in common is taken off, since it changes no balance. That is the median
//   over the devices, and of two the change that is nearer to none.
// A device whose only layer takes longer cannot be told from a device that is slower.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "profiles/cost_scales.h"
#include "profiles/units.h"

namespace frazil {

// How the time of a device, or of a layer on a device, has changed.
struct CostChange {
  DeviceId device;
  std::optional<LayerId> layer = std::nullopt;  // none: the device as a whole
  double weight = 1;                            // predicted time
  double change = 0;                            // logarithm of time now / time before
  double noise = 0;         // half of the interval of the change beside the others
  bool is_outside = false;  // the change has been found to be none
};

struct DriftFactors {
  // By device: time now / time before, less what all devices have in common; 1 for a device that
  // does nothing.
  std::vector<double> devices;
  // The same of layers, beside their device; only those that stand out.
  std::map<LayerId, double> layers;
};

struct Drift {
  DriftFactors now;
  DriftFactors least;  // the ends of their intervals that are nearest to no change
  std::string what;    // "device 1 takes 1.30 x", "layer 3 takes 2.00 x"
};

// Returns what has drifted on so many devices.
Drift attribute_drift(const std::vector<CostChange>& changes, int devices);

// Returns the scales with what has drifted since. Each stays within [1, kLargestTimePpm]. Requires:
// scales for the drift's devices and layers.
CostScales with_drift(CostScales scales, const DriftFactors& drift);

}  // namespace frazil
