#pragma once
// What a device adds up of the gradients of a step, for freeze policies to read
// (exec/run/freeze_signals.h): in double, or in the order of the steps, so that all plans give the
// same bits.

#include "exec/state/layer_state.h"
#include "exec/tensors/tensors.h"

namespace frazil {

// Over all elements, tensor by tensor.
double sum_squares(const Tensors& gradients);
// Adds what a step gave to the layer's sums.
void add_to_sums(LayerState& state, const Tensors& gradients);

}  // namespace frazil
