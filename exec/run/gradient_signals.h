#pragma once
// A device adds up these quantities of a step's gradients for freeze policies to read
// (exec/run/freeze_signals.h). It adds in double, or in the order of the steps, so that all plans
// give the same bits.

#include "exec/state/layer_state.h"
#include "exec/tensors/tensors.h"

namespace frazil {

// Returns the sum of squares of one tensor, a double where the tensor lies.
at::Tensor sum_of_squares(const at::Tensor& gradient);
// Returns the sum of squares over all elements, tensor by tensor.
double sum_squares(const Tensors& gradients);
// Adds the gradients of a step to LayerState::gradient_sums.
void add_to_sums(LayerState& state, const Tensors& gradients);

}  // namespace frazil
