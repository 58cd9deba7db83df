#pragma once
// Devices and links whose figures are published, for clusters that nobody has measured yet. Each
// row names its source; data sheets give rates of both directions together, a row has one of them.
// Rates are those of the line, and latencies those that NCCL's tuning model assumes, so a measured
// cluster (frazil profile) is slower rather than faster.

#include <span>
#include <string_view>

#include "profiles/cluster.h"

namespace frazil {

struct DevicePreset {
  std::string_view name;    // "h100-sxm"
  Bytes memory;             // decimal, as data sheets count
  int per_host = 1;         // devices of the usual host
  Link within;              // between two devices of a host
  std::string_view source;  // of memory and bandwidth
  std::string_view latency_source;
};

struct LinkPreset {
  std::string_view name;  // "infiniband-ndr"
  Link link;              // between two devices of different hosts
  std::string_view source;
  std::string_view latency_source;
};

std::span<const DevicePreset> all_device_presets();
std::span<const LinkPreset> all_link_presets();

}  // namespace frazil
