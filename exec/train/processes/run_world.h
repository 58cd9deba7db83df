#pragma once
// The processes of a training run: who has which devices, and how they reach each other.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "exec/config/run_config.h"
#include "exec/data/dataset.h"
#include "exec/links/peer_links.h"
#include "exec/run/run.h"

namespace frazil {

// What carries tensors between processes. NCCL carries those of GPUs; what is of the host goes over
// sockets.
enum class Transport { kSockets, kGloo, kNccl };

// Where a process and its leader reach each other: at the ends of their control connection; parent
// and children at the loopback.
struct ProcessHosts {
  std::string own = "127.0.0.1";
  std::string other = "127.0.0.1";
};
ProcessHosts find_hosts(const Descriptor& control);

// Spreads so many devices over processes, as evenly as can be, the first ones getting more. Returns
// the process of each device. Requires: 1 <= processes <= devices.
std::vector<int> spread_devices(int devices, int processes);

// Says in the cluster which devices share a process, as spread_devices() does.
void spread_over(Cluster& cluster, int processes);

// Returns the place of a process. Requires: its devices follow one another.
PoolPlace place_of(const std::vector<int>& process_of, int process);

// Make worlds over these sockets, one after another. `has_core_per_rank`: waits may spin.
RunWorld::Join join_over_links(std::vector<PeerSockets> peers, int process, bool has_core_per_rank);
RunWorld::Join join_over_links(std::shared_ptr<PeerLinks> links, int process,
                               bool has_core_per_rank);

// Gets this process its sockets to one that comes while the run goes on, or, as that one, to all
// others, by process. Throws PeerLost, and what `check` throws, which is called several times a
// second.
using LateSockets = std::function<std::map<int, PeerSockets>(const ConnectJob& job,
                                                             const std::function<void()>& check)>;
RunWorld::Connect connect_over_links(std::shared_ptr<PeerLinks> links, LateSockets sockets);

// Returns a hash of all samples.
std::uint64_t hash_data(const Dataset& data);
// Returns the hashes of the files beside the data (hash_files() in exec/config/configured_run.h) in
// words; empty without such files.
std::string describe_files(const RunConfig& config);

}  // namespace frazil
