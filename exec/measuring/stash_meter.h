#pragma once
// The bytes a layer's forward, and its loss, keep for the backward, counted by libtorch's own
// allocation reports on the calling thread: what is alive afterwards, less the outputs that the
// next layers count as their inputs, plus the layer's own inputs.

#include <cstdint>
#include <vector>

#include "exec/measuring/allocation_meter.h"
#include "exec/state/layer_state.h"
#include "exec/tensors/samples.h"

namespace frazil {

// What a layer keeps that has run under a meter of its own, and whose outputs are still there.
std::int64_t count_stash(const AllocationMeter& meter, const Tensors& inputs,
                         const Tensors& outputs);

// By layer, for one micro-batch: with all of them training, or all of them frozen but asked for the
// gradients of their inputs. `state` holds every layer. Runs each forward once.
std::vector<Bytes> measure_stashes(const ModelSpec& model, const DeviceState& state,
                                   const Samples& micro_batch, bool frozen = false);

}  // namespace frazil
