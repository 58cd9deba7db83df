#pragma once
// Finds the levels of machines that PipeDream's partition
// (planner/partition/replicated_partition.h) is made for, and the devices of its stages. Hosts with
// equally many devices (two or more), numbered host by host, are two levels of machines, with the
// bandwidths of the first link within a host and of the first link between two hosts; else there is
// one level, with the bandwidth from device 0 to 1.

#include <vector>

#include "planner/partition/replicated_partition.h"
#include "planner/plan/plan.h"
#include "profiles/cluster.h"

namespace frazil {

// Returns the devices per host where there are two levels; else the number of all devices.
int find_devices_per_host(const Cluster& cluster);
std::vector<ReplicaLevel> find_replica_levels(const Cluster& cluster);

// Gives stages their devices: `replicas` of a stage at each level, innermost first. Stages follow
// each other within a host as long as there is room, and lie on the same devices of each host over
// which an outer stage is replicated. The devices of a stage are in such an order that micro-batch
// m runs on host m mod hosts through the stages that share hosts.
std::vector<std::vector<DeviceId>> place_replicas(const std::vector<std::vector<int>>& replicas,
                                                  int devices_per_host);

// Makes a stage of ascending layers on these devices.
Stage make_replicated_stage(const std::vector<LayerId>& layers, std::vector<DeviceId> devices);

}  // namespace frazil
