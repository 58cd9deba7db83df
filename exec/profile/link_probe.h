#pragma once
// probe_link() measures the link between two devices of this machine as the executor uses it. The
// one-way latency comes from a ping-pong of empty messages, the bandwidth from exact reductions of
// 1 MiB between the two devices, read through the closed form with which the simulator prices them
// (sim/collective_cost.h).

#include "exec/devices/compute_device.h"
#include "exec/devices/workers.h"
#include "exec/run/jobs/pair_times.h"
#include "profiles/cluster.h"

namespace frazil {

struct LinkProbe {
  Link link;
  int repetitions = 0;
};

// Returns the latency of a pair that was asked for empty messages first.
Duration find_latency(const PairTimes& times);

// Returns the link of a pair that was asked for empty messages first, and for reductions.
Link find_link(const PairTimes& times);

// Probes devices 0 and 1. A single device has no link: the answer then costs nothing.
LinkProbe probe_link(const ComputeDevices& devices, int repetitions = 200);

}  // namespace frazil
