#pragma once
// A member process of a training run: makes model, data and devices as the leader says, and serves
// it until the run is over (exec/run/jobs/serve_pool.h). It writes no file.

#include <vector>

#include "exec/control/control_message.h"
#include "exec/links/peer_links.h"
#include "exec/train/processes/run_world.h"

namespace frazil {

// Serves the leader at the other end of `control` as process `process`; `peers`: sockets to each
// process of the run, by process; none in a process that has come late. `late`: how it gets to know
// processes that come while the run goes on. Returns the exit code with which the leader dismisses
// the member. Throws PeerLost if the leader is lost.
StopMessage serve_run(int process, Descriptor control, std::vector<PeerSockets> peers,
                      LateSockets late);

}  // namespace frazil
