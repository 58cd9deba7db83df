#pragma once
// A cluster: hosts, devices with memory limits, and the links between devices.

#include <string>
#include <vector>

#include "profiles/model_profile.h"
#include "profiles/units.h"

namespace frazil {

struct Host {
  std::string name;
  Bytes memory;

  friend bool operator==(const Host&, const Host&) = default;
};

// The largest Device::time_ppm: a millionfold.
inline constexpr std::int64_t kLargestTimePpm = 1'000'000'000'000;

// A CPU core or a GPU.
struct Device {
  std::string name;
  HostId host;
  Bytes memory_limit;  // logical bytes (see sim/memory.h)
  // Time here per time on the profiled device, in millionths (1'500'000: 1.5 times slower).
  std::int64_t time_ppm = 1'000'000;
  Duration action_overhead{0};  // added to every action beside its layers' costs
  Duration step_overhead{0};    // once per step and device

  friend bool operator==(const Device&, const Device&) = default;
};

// A message of n bytes occupies the link for n / bandwidth and arrives `latency` after that.
struct Link {
  Duration latency{0};
  BytesPerSecond bandwidth;  // 0: unlimited

  friend bool operator==(const Link&, const Link&) = default;
};

struct DirectedLink {
  DeviceId from;
  DeviceId to;
  Link link;

  friend bool operator==(const DirectedLink&, const DirectedLink&) = default;
};

struct Cluster {
  std::vector<Host> hosts;
  std::vector<Device> devices;
  Link default_link;
  std::vector<DirectedLink> links;  // overrides, sorted by (from, to)
  Provenance provenance;

  // Returns the link from one device to another. A device's link to itself costs nothing.
  // Requires: both devices exist.
  Link link(DeviceId from, DeviceId to) const;
  friend bool operator==(const Cluster&, const Cluster&) = default;
};

// Makes one host with `devices` equal devices, as tests and what-ifs need it.
// Requires: devices > 0.
Cluster make_uniform_cluster(int devices, Bytes memory_limit, Link link);

// Throws InputError (line 0) for what cannot be a cluster: no device, an unknown host, names that
// are empty or doubled, links out of range or unsorted, times outside [0, kLargestQuantity], ... A
// memory may be any count from 0 up.
void validate(const Cluster& cluster, const std::string& file);

}  // namespace frazil
