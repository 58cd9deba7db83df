#pragma once
// clang-format off
// Changes what was measured before anything is planned or simulated: what if a device, a link or a
// layer were faster or slower? The text forms (numbers decimal, no sign, at most nine places) are
//   device 2 x1.5             compute on device 2 takes 1.5 times as long (its time_ppm)
//   straggler 3 +30%          the same as device 3 x1.3
//   link 0>1 x2               messages from device 0 to device 1, in this direction, take 2 times
//                             as long: latency x2, bandwidth / 2
//   link 0>1 latency x2       its latency alone
//   link 0>1 transfer x2      its bandwidth alone
//   layer 5 x0.5              all times of layer 5 (F, I, W, U, at every size) halve; bytes stay
// x0 makes a link or a layer free; the factor of a device must be above 0.
// clang-format on

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "profiles/cluster.h"
#include "profiles/model_profile.h"

namespace frazil {

// An exact ratio >= 0 in lowest terms.
struct Factor {
  std::int64_t numerator = 1;
  std::int64_t denominator = 1;
  friend bool operator==(const Factor&, const Factor&) = default;
};

struct ScaleDevice {
  DeviceId device;
  Factor factor;
  friend bool operator==(const ScaleDevice&, const ScaleDevice&) = default;
};

struct ScaleLink {
  DeviceId from;
  DeviceId to;
  bool latency = true;
  bool transfer = true;
  Factor factor;
  friend bool operator==(const ScaleLink&, const ScaleLink&) = default;
};

struct ScaleLayer {
  LayerId layer;
  Factor factor;
  friend bool operator==(const ScaleLayer&, const ScaleLayer&) = default;
};

using WhatIfChange = std::variant<ScaleDevice, ScaleLink, ScaleLayer>;

// Reads one of the text forms; factors and percents go up to 1'000'000. Throws InputError{flag, 0}.
WhatIfChange parse_change(std::string_view text, const std::string& flag);

struct Measured {
  ModelProfile profile;
  Cluster cluster;
  friend bool operator==(const Measured&, const Measured&) = default;
};

// Applies the changes one after another. Each count (ns, bytes per second, time_ppm) is multiplied
// or divided exactly and rounded to the nearest whole number, halves up. An unlimited bandwidth
// stays unlimited. Throws InputError{flag, 0} for a device or layer that does not exist, and for a
// result outside what profiles and clusters may hold: a time_ppm below 1, a link below 1 byte per
// second, ...
Measured apply_changes(std::span<const WhatIfChange> changes, Measured measured,
                       const std::string& flag);

}  // namespace frazil
