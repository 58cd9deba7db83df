#pragma once
// Moving from one plan to the next between two steps: state goes, in memory, from the devices that
// hold a layer to those that will. What stays is not touched; a new holder gets the state handed
// over when the old one gives it up, else a copy. No file, no rebuild.

#include <functional>
#include <vector>

#include "exec/state/layer_state.h"
#include "planner/plan/plan.h"

namespace frazil {

struct MoveReport {
  int layers_handed_over = 0;
  int layers_copied = 0;
  Bytes moved;   // handed over or copied
  Bytes copied;  // of them
};

// Runs a job once for every device, wherever and in whatever order, and returns when all are done.
using OnEveryDevice = std::function<void(const std::function<void(DeviceId)>&)>;

// `states[d]` is what device d holds; afterwards it holds exactly the layers `plan` gives it.
// Devices copy what they take and free what they give up at the same time where `on_every` lets
// them; without it one after another. If that throws, nothing has moved.
// Requires: every layer is held somewhere.
MoveReport move_layers(std::vector<DeviceState>& states, const Plan& plan, int layers,
                       const OnEveryDevice& on_every = {});

// The blocks of StateMemory that move_layers would copy into, were `freezes` without moments.
std::vector<Bytes> copied_blocks(const std::vector<DeviceState>& states, const Plan& plan,
                                 const std::vector<bool>& freezes);

// The first holder of each layer, in layer order. Requires: every layer is held somewhere.
std::vector<const LayerState*> first_holders(const std::vector<DeviceState>& states, int layers);

}  // namespace frazil
