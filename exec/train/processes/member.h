#pragma once
// A member process of a training run: makes model, data and devices as the leader says, and serves
// it until the run is over (exec/run/jobs/serve_pool.h). It writes no file.

#include <vector>

#include "exec/links/peer_links.h"
#include "profiles/error.h"

namespace frazil {

// Serves the leader at the other end of `control` as process `process`; `peers`: sockets to each
// process of the run, by process. Returns the exit code with which the leader dismisses the member.
// Throws PeerLost if the leader is lost.
ExitCode serve_run(int process, Descriptor control, std::vector<PeerSockets> peers);

}  // namespace frazil
