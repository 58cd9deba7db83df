#pragma once
// These functions measure the saved activations (stash) of a layer: the bytes that its forward and
// its loss keep for the backward. libtorch's allocation reports on the calling thread tell what is
// alive afterwards; from that the outputs are subtracted, which the next layers count as their
// inputs, and the layer's own inputs are added.

#include <cstdint>
#include <vector>

#include "exec/measuring/allocation_meter.h"
#include "exec/state/layer_state.h"
#include "exec/tensors/samples.h"

namespace frazil {

// Returns the stash of a layer that has run under a meter of its own and whose outputs are still
// there.
std::int64_t count_stash(const AllocationMeter& meter, const Tensors& inputs,
                         const Tensors& outputs);

// Returns the stash of every layer, by layer, for one micro-batch. All layers train or, if
// `frozen`, all are frozen but asked for the gradients of their inputs. `state` holds every layer.
// Runs each forward once.
std::vector<Bytes> measure_stashes(const ModelSpec& model, const DeviceState& state,
                                   const Samples& micro_batch, bool frozen = false);

}  // namespace frazil
