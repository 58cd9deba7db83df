#pragma once
// Gradients are clipped by their global norm. Sums of squares per parameter are added in double in
// parameter order in one place, the first device of the plan that owns a layer, so the scale has
// the same bits in every plan. Frozen parameters are left out. The rule is that of PyTorch's
// clip_grad_norm_: scale = min(1, clip_norm / (norm + 1e-6)).

#include <map>

#include "exec/communication/communicator.h"
#include "exec/program/step_program.h"

namespace frazil {

// Returns the scale, which is NaN if the norm is NaN. `sums`: the complete gradients of the layers
// that this device holds. Every device with an update must call it.
double find_clip_scale(const std::map<LayerId, Tensors>& sums, const StepProgram& program,
                       DeviceId self, Communicator& communicator, Step step, double clip_norm);

}  // namespace frazil
