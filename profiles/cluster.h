#pragma once
// A cluster: hosts, devices with memory limits, processes that own devices, and the links between
// devices.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "profiles/model_profile.h"
#include "profiles/units.h"

namespace frazil {

struct Host {
  std::string name;
  Bytes memory;

  friend bool operator==(const Host&, const Host&) = default;
};

using ProcessId = Id<struct ProcessTag>;  // counted over the whole cluster
// Devices of a host that name no process share one process of that host.
inline constexpr ProcessId kUnnamedProcess{-1};

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
  ProcessId process = kUnnamedProcess;

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

// How near two devices are: in one process, in two processes of one host, on two hosts.
enum class LinkClass : std::uint8_t { kProcess, kHost, kNetwork };
inline constexpr std::array kLinkClasses = {LinkClass::kProcess, LinkClass::kHost,
                                            LinkClass::kNetwork};
std::string_view name_of(LinkClass link_class);  // "process", "host", "network"

// The links of pairs of devices by class, where a cluster tells them.
struct LinkClasses {
  std::array<std::optional<Link>, kLinkClasses.size()> by_class;  // by LinkClass

  std::optional<Link>& operator[](LinkClass link_class) {
    return by_class[static_cast<std::size_t>(link_class)];
  }
  const std::optional<Link>& operator[](LinkClass link_class) const {
    return by_class[static_cast<std::size_t>(link_class)];
  }
  bool empty() const;
  friend bool operator==(const LinkClasses&, const LinkClasses&) = default;
};

// What a commit round (planner/plan/commit_round.h) is taken to last where nobody measured it.
inline constexpr Duration kDefaultCommitRound{50'000};

struct Cluster {
  std::vector<Host> hosts;
  std::vector<Device> devices;
  Link default_link;                     // of pairs whose class has no link
  LinkClasses link_classes;              // of pairs without an override
  std::vector<DirectedLink> links;       // overrides, sorted by (from, to)
  std::optional<Duration> commit_round;  // none: kDefaultCommitRound
  Provenance provenance;

  // Returns the link from one device to another. A device's link to itself costs nothing.
  // Requires: both devices exist.
  Link link(DeviceId from, DeviceId to) const;
  // Returns how near two devices are. Requires: both devices exist.
  LinkClass class_of(DeviceId from, DeviceId to) const;
  // Returns the link of the pairs of a class that have no override.
  const Link& usual_link(LinkClass link_class) const;
  friend bool operator==(const Cluster&, const Cluster&) = default;
};

// Makes one host with `devices` equal devices, as tests and what-ifs need it.
// Requires: devices > 0.
Cluster make_uniform_cluster(int devices, Bytes memory_limit, Link link);

// Throws InputError (line 0) for what cannot be a cluster: no device, an unknown host, names that
// are empty or doubled, a process on two hosts, links out of range or unsorted, times outside
// [0, kLargestQuantity], ... A memory may be any count from 0 up.
void validate(const Cluster& cluster, const std::string& file);

}  // namespace frazil
