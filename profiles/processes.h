#pragma once
// Which devices of a cluster share a process, and what follows. A cluster tells of processes if a
// device names one, or if it has link classes or a commit round; then the devices of a host that
// name no process share one. A cluster that tells nothing of processes is taken for one process, on
// however many hosts.

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "profiles/cluster.h"

namespace frazil {

bool tells_processes(const Cluster& cluster);

// True if the two devices have one process, in a cluster that tells of processes.
inline bool share_process(const Device& one, const Device& other) {
  return one.host == other.host && one.process == other.process;
}
// True if the devices lie in more than one process of a cluster that tells of processes.
bool span_processes(const Cluster& cluster, std::span<const DeviceId> devices);
// Returns how many processes own the cluster's devices; 1 if it tells nothing of processes.
int count_processes(const Cluster& cluster);

// Returns how many devices the largest process has.
int count_in_largest_process(const Cluster& cluster);

// Returns how long a commit round takes: what the cluster says, or the default.
inline Duration commit_round_of(const Cluster& cluster) {
  return cluster.commit_round.value_or(kDefaultCommitRound);
}

// Counts the ordered pairs of different devices of each class, by LinkClass. Requires: devices
// differ.
using PairCounts = std::array<std::int64_t, kLinkClasses.size()>;
PairCounts count_pairs(const Cluster& cluster, std::span<const DeviceId> devices);
std::vector<DeviceId> all_devices(const Cluster& cluster);

// Deals the devices to so many processes, equally many on each host; a process takes neighbours, as
// equally many as can be, and the first processes of a host have the rest. Throws InputError (line
// 0, `flag`) if the hosts cannot have equally many processes, or one has fewer devices than that.
// Requires: at least one process.
void deal_processes(Cluster& cluster, int processes, const std::string& flag);

}  // namespace frazil
