#pragma once
// A world over processes, each of which has some of its ranks. Ranks of one process hand tensors
// over by pointer; to ranks of other processes they go over links. Causes, finished parts and
// departures travel too, so that all ranks of all processes end in the same words. A process whose
// links close while its ranks are still in the world is lost: "rank 1 is lost: its process has
// ended".
//
// A rank that waits reads for its process, and spins before it sleeps only if every rank of the
// host has a core. What a rank sends is received when somebody in the other process waits or sends;
// until then it takes credit of the links, and over that send() waits.

#include <cstdint>
#include <memory>
#include <vector>

#include "exec/communication/communicator.h"
#include "exec/communication/process_place.h"
#include "exec/links/peer_links.h"

namespace frazil {

// Returns the communicators of this process's ranks, in the order of ranks; rank() and size() are
// those of the world. Every process calls it with the same epoch, ranks and options. A later call
// with a higher epoch makes a new world over the same links, in which nothing of the old one is
// heard; the old one must not be waited in any more.
std::vector<std::unique_ptr<Communicator>> make_process_communicators(
    std::shared_ptr<PeerLinks> links, std::uint32_t epoch, const ProcessPlace& place,
    const CommunicatorOptions& options = {});

}  // namespace frazil
