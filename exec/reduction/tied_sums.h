#pragma once
// The gradient of a parameter with several uses is the sum of the gradients of all uses. They are
// added from the last layer to the first, as autograd adds them, on every device that holds a use,
// which receives the sums that it lacks from other devices.

#include <map>

#include "exec/communication/communicator.h"
#include "exec/measuring/reduction_meter.h"
#include "exec/program/step_program.h"

namespace frazil {

// Replaces the sums of the uses in `sums` by their total, each a tensor of its own that may be
// written to in place. `sums`: the complete sums of the layers that `device` holds. All devices
// with a use must call it.
void add_tied_uses(const TiedUses& uses, const Plan& plan, DeviceId device, Step step,
                   Communicator& communicator, std::map<LayerId, Tensors>& sums,
                   const TellHeld& tell_held);

}  // namespace frazil
