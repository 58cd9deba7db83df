#pragma once
// A digest stands for what a device holds of a layer, so that weights can be compared and named
// wherever they lie.

#include <compare>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "profiles/units.h"

namespace frazil {

// The XXH64 of parameters, moments and updates, or of the weights alone.
struct LayerDigest {
  LayerId layer;
  DeviceId device;
  std::uint64_t hash = 0;
  friend auto operator<=>(const LayerDigest&, const LayerDigest&) = default;
};

// Returns one hash of each layer, in layer order. Requires: there is one of each of the layers, and
// the devices that hold a layer have equal ones.
std::vector<std::uint64_t> hash_by_layer(std::vector<LayerDigest> digests, std::size_t layers);

}  // namespace frazil
