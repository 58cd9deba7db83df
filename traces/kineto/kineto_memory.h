#pragma once
// Measures the saved activations (stash) of each layer from a trace that was recorded with
// profile_memory=True. What a forward allocates and a backward frees was kept for that backward,
// and counts at the layer whose backward freed it: so a layer's input counts where it is read, as
// in a model profile. What outlives the backward (outputs that the program still names, the batch
// itself) counts at the layer that made it, or at the first layer. Scratch that a forward frees
// again, gradients and the optimizer's memory count nowhere. If the trace has a device's memory,
// the host's does not count.

#include <cstdint>
#include <vector>

#include "traces/kineto/kineto_join.h"
#include "traces/kineto/kineto_layers.h"

namespace frazil {

// The bytes kept by layer and step, all micro-batches of a step together; no layers if the trace
// does not tell.
std::vector<std::vector<std::int64_t>> sum_stashes(const JoinedTrace& trace,
                                                   const TraceLayers& layers);

}  // namespace frazil
