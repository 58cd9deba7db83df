#pragma once
// Makes a cluster of equal devices on equal hosts, so that nobody writes its devices and links by
// hand.

#include <optional>

#include "profiles/cluster.h"

namespace frazil {

// The most devices and links of a cluster that is made.
inline constexpr int kMostDevices = 65'536;
inline constexpr std::int64_t kMostLinks = 4'000'000;

struct ClusterShape {
  int devices = 1;
  int per_host = 1;       // the last host has the rest
  Bytes memory;           // of each device
  Bytes host_memory;      // 0: not told
  Link within;            // between two devices of a host
  Link between;           // between devices of different hosts
  Provenance provenance;  // taken over

  // Processes of the whole cluster, dealt by deal_processes() (profiles/processes.h); 0: none are
  // named, and the cluster tells nothing of processes.
  int processes = 0;
  std::optional<Link> in_process;  // between two devices of a process; none: as `within`
  std::optional<Duration> commit_round;
};

// Returns devices "device0", ... on hosts "host0", ..., neighbours on one host. Throws InputError
// (line 0) for more devices or links than the most, and for processes that cannot be dealt.
// Requires: at least one device and one per host; what is said of processes comes with processes.
Cluster make_cluster(const ClusterShape& shape);

}  // namespace frazil
