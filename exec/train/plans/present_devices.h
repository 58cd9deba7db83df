#pragma once
// The devices of a cluster that are there: plans are searched on these alone and then named as the
// cluster names its devices.

#include <vector>

#include "planner/plan/plan.h"
#include "profiles/cluster.h"

namespace frazil {

// Returns the cluster of these devices, which are ascending; device i of it is devices[i].
Cluster keep_devices(const Cluster& cluster, const std::vector<DeviceId>& devices);

// Returns the plan with device i of it on devices[i].
Plan on_devices(const Plan& plan, const std::vector<DeviceId>& devices);
// Returns the plan whose on_devices() the given plan is. Requires: it uses these devices alone.
Plan from_devices(const Plan& plan, const std::vector<DeviceId>& devices);

}  // namespace frazil
