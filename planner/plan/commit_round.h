#pragma once
// The commit round of a step over processes. When a process has reduced its gradients, it says so
// to the leader; when all have, the leader answers, and only then does any device update. So a
// process that is lost before leaves no device with an update more than another. In a schedule the
// round is the BARRIER before the updates, the one that clipping has, and it takes
// Cluster::commit_round after the last reduction of any device.

#include <optional>
#include <vector>

#include "planner/plan/plan.h"
#include "profiles/cluster.h"

namespace frazil {

// Returns the devices that have a stage, ascending, each once.
std::vector<DeviceId> list_used_devices(const Plan& plan);

// True if the plan updates once, at the end of a step: neither by weight versions nor among the
// backwards of an explicit schedule.
bool updates_at_end(const Plan& plan);

// Returns how long the commit round of a step takes; none if the step has none, because the plan
// does not update at the end, or uses the devices of one process, whose vote is waited for by no
// other and is not priced.
std::optional<Duration> find_commit_round(const Plan& plan, const Cluster& cluster);

// True if the plan uses the devices of several processes and yet has no commit round, so that a
// process that is lost ends the run.
bool ends_with_a_process(const Plan& plan, const Cluster& cluster);

}  // namespace frazil
