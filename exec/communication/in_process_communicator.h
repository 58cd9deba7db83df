#pragma once
// Ranks are threads of one process; tensors are handed over by pointer, nothing is copied. A
// waiting rank spins for a moment before it sleeps when every rank has a core of its own. Waits
// that can never end (a ring of ranks, a peer that has left) are errors as soon as their last rank
// is about to sleep.

#include <memory>
#include <vector>

#include "exec/communication/communicator.h"

namespace frazil {

// Communicators of ranks 0..ranks-1 that reach each other. They share one mailbox room and may
// outlive each other; who is destroyed has left.
std::vector<std::unique_ptr<Communicator>> make_in_process_communicators(
    int ranks, const CommunicatorOptions& options = {});

}  // namespace frazil
