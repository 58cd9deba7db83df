#pragma once
// Measures what connects two processes of a run, each with a device, over the links that a run
// takes: those of children of this process, or of processes that have been launched. Messages are
// timed by themselves; reductions and commit rounds in steps of real training, with a replica of
// the model on each device, and with half of it.

#include <cstdint>
#include <optional>
#include <vector>

#include "exec/config/run_config.h"
#include "exec/data/dataset.h"
#include "exec/devices/compute_device.h"
#include "exec/links/joining/joined_world.h"
#include "profiles/cluster.h"

namespace frazil {

struct MessageTime {
  std::int64_t bytes = 0;
  Duration one_way{0};  // median
};

struct ProcessProbe {
  LinkClass link_class = LinkClass::kHost;  // kNetwork where the processes are on two hosts
  // The latency of an empty message, and the bandwidth that the reductions of the model show.
  Link link;
  std::vector<MessageTime> messages;
  // From the last vote until all may update, and how much later than the leader the other process
  // begins a step: what a step over processes takes beside its actions.
  Duration commit_round{0};
};

// `joined`: where given, the two processes of a launch, which this one leads; their connections are
// used up. `tell` is given a sentence for each process that is turned away meanwhile. Throws as a
// run does.
ProcessProbe probe_processes(const RunConfig& config, const Dataset& data,
                             const DeviceChoice& processors, JoinedWorld* joined,
                             const std::function<void(const std::string&)>& tell);

}  // namespace frazil
