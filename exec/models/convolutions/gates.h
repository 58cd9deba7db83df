#pragma once
// The gradient of a choice among operations by binary gates (Cai, Zhu & Han, "ProxylessNAS: Direct
// Neural Architecture Search on Target Task and Hardware", 2019). A cell runs the one operation i
// whose gate g_i is 1, so that it puts out sum_j g_j o_j = o_i. The gradient of its loss L to a
// gate is dL/dg_j = <dL/doutput, o_j>, and stands for that to the probability p_j, from which the
// gate was drawn.

#include <ATen/core/Tensor.h>

#include "exec/tensors/tensors.h"

namespace frazil {

// Returns `output`, bit for bit, such that a backward goes on into it as it has come, and gives
// probability j the sum over all products of the gradient with outputs[j], in float32; 0 where
// outputs[j] is undefined. `outputs` have the shape of `output` and carry no gradient themselves.
at::Tensor pass_gates(const at::Tensor& output, const at::Tensor& probabilities,
                      const Tensors& outputs);

}  // namespace frazil
