#pragma once
// The bytes a layer's forward keeps for its backward, counted by libtorch's own allocation reports
// on the calling thread: what is alive after the forward, less the output that the next layer
// counts as its input, plus the layer's own input.

#include "exec/layer_state.h"

namespace frazil {

// For one micro-batch of `input`'s size. Runs the forward once, with gradients.
Bytes measure_stash(const ModelSpec& model, LayerId layer, const LayerState& state,
                    const at::Tensor& input);

}  // namespace frazil
