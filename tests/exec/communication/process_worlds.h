#pragma once
// Worlds over links whose processes are all this one: each has links of its own and its ranks are
// played by threads, so that a test sees all of them and can break any.

#include <memory>
#include <vector>

#include "exec/communication/process_communicator.h"
#include "exec/links/peer_links.h"

namespace frazil {

using Ranks = std::vector<std::unique_ptr<Communicator>>;
using AllLinks = std::vector<std::shared_ptr<PeerLinks>>;  // by process

// Options under which nothing lingers when a test drops a world.
LinkOptions brief_options();

AllLinks make_unix_links(int processes, const LinkOptions& options = brief_options());
// Over TCP on the loopback.
AllLinks make_tcp_links(int processes, const LinkOptions& options = brief_options());
std::vector<std::vector<PeerSockets>> make_tcp_pairs(int processes);

// Returns the process of each rank, neighbours together: {0, 0, 1, 1}.
std::vector<int> spread_ranks(int ranks, int processes);

// Makes the ends of all processes; returns those of all ranks in their order.
Ranks make_ranks(const AllLinks& links, std::uint32_t epoch,
                 const std::vector<int>& process_of_rank, const CommunicatorOptions& options = {});

}  // namespace frazil
