#pragma once
// The gradient of a parameter with several uses: the sums of all of them, added in layer order on
// every device that holds a use. What a device lacks comes from another.

#include <map>

#include "exec/communication/communicator.h"
#include "exec/measuring/reduction_meter.h"
#include "exec/program/step_program.h"

namespace frazil {

// `sums`: complete, of the layers that `device` holds; those of the uses become the total, each a
// tensor of its own, which may be added to in place. All devices with a use call it.
void add_tied_uses(const TiedUses& uses, const Plan& plan, DeviceId device, Step step,
                   Communicator& communicator, std::map<LayerId, Tensors>& sums,
                   const TellHeld& tell_held);

}  // namespace frazil
