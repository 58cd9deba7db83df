#pragma once
// One optimizer step of one layer, in place: libtorch's fused AdamW (Loshchilov & Hutter 2019) and
// SGD with momentum (Sutskever et al. 2013, PyTorch's form without dampening). A pure function of
// state, gradients and rate, so owners that hold the same bits before hold the same bits after.

#include <ATen/core/Tensor.h>

#include <vector>

#include "exec/layer_state.h"
#include "exec/run_config.h"

namespace frazil {

// `gradients[i]` belongs to `state.parameters[i]`, same shape, contiguous; they may be overwritten.
// Weight decay applies to every parameter. Requires: the layer is active.
void update_layer(LayerState& state, const std::vector<at::Tensor>& gradients,
                  const OptimizerConfig& config, double learning_rate);

// Bytes of optimizer state per byte of parameters: 2 for AdamW, 1 for SGD with momentum, else 0.
int optimizer_bytes_per_parameter_byte(const OptimizerConfig& config);

}  // namespace frazil
