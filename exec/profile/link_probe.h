#pragma once
// probe_link() measures the link between two devices of this machine as the executor uses it. The
// one-way latency comes from a ping-pong of empty messages, the bandwidth from exact reductions of
// 1 MiB between the two devices, read through the closed form with which the simulator prices them
// (sim/collective_cost.h).

#include "exec/devices/compute_device.h"
#include "exec/devices/workers.h"
#include "profiles/cluster.h"

namespace frazil {

struct LinkProbe {
  Link link;
  int repetitions = 0;
};

// Probes devices 0 and 1. A single device has no link: the answer then costs nothing.
LinkProbe probe_link(const ComputeDevices& devices, int repetitions = 200);

}  // namespace frazil
