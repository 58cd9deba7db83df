#pragma once
// The link between two devices of this machine, as the executor uses it: one-way latency from a
// ping-pong of empty messages, bandwidth from exact reductions of 1 MiB between both, read through
// the closed form the simulator prices them with (sim/collective_cost.h).

#include "exec/devices/compute_device.h"
#include "exec/devices/workers.h"
#include "profiles/cluster.h"

namespace frazil {

struct LinkProbe {
  Link link;
  int repetitions = 0;
};

// Uses devices 0 and 1; a single device has no link (zero cost).
LinkProbe probe_link(const ComputeDevices& devices, int repetitions = 200);

}  // namespace frazil
