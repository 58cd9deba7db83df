#pragma once
// Worlds of a run whose tensors go by Gloo (exec/communication/gloo_communicator.h). The group has
// the processes that the run begins with: worlds after a loss are made of those that are left, over
// the same connections, and a process that comes later has no place in it.

#include <cstdint>
#include <string>

#include "exec/links/gloo_group.h"
#include "exec/run/run.h"
#include "exec/train/processes/run_world.h"

namespace frazil {

// Returns the place of the leader, with a store that listens at `host`.
GlooPlace lead_by_gloo(const std::string& host, int processes);
// Returns the place of a member, which finds the leader's store at this port.
GlooPlace follow_by_gloo(const ProcessHosts& hosts, std::uint16_t port, int process, int processes);

// Makes worlds by Gloo, one after another. Making the first one waits until all processes do. It
// throws PeerLost if they do not come together, and InputError for a process that came later.
RunWorld::Join join_over_gloo(GlooPlace place);

}  // namespace frazil
