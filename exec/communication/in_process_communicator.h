#pragma once
// A world whose ranks are threads of one process. Tensors are handed over by pointer, nothing is
// copied. A waiting rank spins for a moment before it sleeps if every rank has a core of its own.
// Waits that can never end (a ring of ranks, a peer that has left) are errors as soon as their last
// rank is about to sleep.

#include <memory>
#include <vector>

#include "exec/communication/communicator.h"

namespace frazil {

// Returns the communicators of ranks 0..ranks-1, which reach each other. They share one mailbox
// room and may outlive each other; a rank whose communicator is destroyed has left.
std::vector<std::unique_ptr<Communicator>> make_in_process_communicators(
    int ranks, const CommunicatorOptions& options = {});

}  // namespace frazil
