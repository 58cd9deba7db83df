#pragma once
// Makes a cluster of equal devices on equal hosts, so that nobody writes its devices and links by
// hand.

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
};

// Returns devices "device0", ... on hosts "host0", ..., neighbours on one host. Throws InputError
// (line 0) for more devices or links than the most. Requires: at least one device and one per host.
Cluster make_cluster(const ClusterShape& shape);

}  // namespace frazil
