#pragma once
// A transition moves state between two steps, in memory, from the devices that hold a layer to
// those that will. State that stays is not touched. A new holder is handed the state of a device
// that gives the layer up; if no device does, the holder gets a copy. No file is written and
// nothing is rebuilt.

#include <functional>
#include <vector>

#include "exec/state/layer_state.h"
#include "planner/plan/plan.h"

namespace frazil {

struct MoveReport {
  int layers_handed_over = 0;
  int layers_copied = 0;
  Bytes moved;   // handed over or copied
  Bytes copied;  // part of `moved`
};

// A function of this type runs a job once for every device, on any thread and in any order, and
// returns when all jobs are done.
using OnEveryDevice = std::function<void(const std::function<void(DeviceId)>&)>;

// Moves layers to the devices that `plan` gives them to. `states[d]` is what device d holds;
// afterwards it holds exactly the layers that `plan` gives it. Devices copy what they take and free
// what they give up at the same time where `on_every` lets them; without `on_every` one after
// another. If copying throws, nothing has moved. Requires: every layer is held somewhere.
MoveReport move_layers(std::vector<DeviceState>& states, const Plan& plan, int layers,
                       const OnEveryDevice& on_every = {});

// Returns the sizes of the StateMemory blocks that move_layers would copy into if the layers of
// `freezes` had no moments.
std::vector<Bytes> copied_blocks(const std::vector<DeviceState>& states, const Plan& plan,
                                 const std::vector<bool>& freezes);

// Returns the state of each layer at its first holder, in layer order. Requires: every layer is
// held somewhere.
std::vector<const LayerState*> first_holders(const std::vector<DeviceState>& states, int layers);

}  // namespace frazil
