#pragma once
// Moving from one plan to the next between two steps: state goes, in memory, from the devices that
// hold a layer to those that will. What stays is not touched; a new holder gets the state handed
// over when the old one gives it up, else a copy. No file, no rebuild.

#include <vector>

#include "exec/layer_state.h"
#include "planner/plan.h"

namespace frazil {

struct MoveReport {
  int layers_handed_over = 0;
  int layers_copied = 0;
  Bytes moved;  // handed over or copied
};

// `states[d]` is what device d holds; afterwards it holds exactly the layers `plan` gives it.
// Requires: every layer is held somewhere.
MoveReport move_layers(std::vector<DeviceState>& states, const Plan& plan, int layers);

// The first holder of each layer, in layer order. Requires: every layer is held somewhere.
std::vector<const LayerState*> first_holders(const std::vector<DeviceState>& states, int layers);

}  // namespace frazil
