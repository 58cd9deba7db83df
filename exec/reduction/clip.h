#pragma once
// Clipping by the global gradient norm: per-parameter sums of squares, added in double in parameter
// order in one place (the first device of the plan that owns a layer), so the scale has the same
// bits in every plan. Frozen parameters are left out. Source of the rule: PyTorch clip_grad_norm_,
// scale = min(1, clip_norm / (norm + 1e-6)).

#include <map>

#include "exec/communication/communicator.h"
#include "exec/program/step_program.h"

namespace frazil {

// `sums`: complete gradients of the layers this device holds. Every device with an
// update calls it.
double find_clip_scale(const std::map<LayerId, Tensors>& sums, const StepProgram& program,
                       DeviceId self, Communicator& communicator, Step step, double clip_norm);

}  // namespace frazil
