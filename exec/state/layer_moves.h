#pragma once
// Decides what a transition moves between two steps: from which devices, which hold a layer, to
// which others, which will. State that stays is not touched. A new holder is handed the state of a
// device that gives the layer up; if no device does, the new holder gets a copy. The decision
// follows from who holds what alone, so that every process of a run makes the same one.

#include <cstddef>
#include <utility>
#include <vector>

#include "exec/state/layer_state.h"
#include "planner/plan/plan.h"

namespace frazil {

// The devices that hold each layer, ascending, by layer.
using Holdings = std::vector<std::vector<DeviceId>>;

struct LayerMove {
  LayerId layer;
  DeviceId from;
  DeviceId to;
  bool is_copy = false;  // `from` keeps the layer, or hands it to another device
  friend bool operator==(const LayerMove&, const LayerMove&) = default;
};

struct LayerMoves {
  std::vector<LayerMove> moves;                        // by layer
  std::vector<std::pair<LayerId, DeviceId>> given_up;  // handed over or freed, by layer
};

struct MoveReport {
  int layers_handed_over = 0;
  int layers_copied = 0;
  Bytes moved;   // handed over or copied
  Bytes copied;  // part of `moved`

  MoveReport& operator+=(const MoveReport& other);
};

// Returns the moves after which exactly the devices of `wanted` hold each layer. `process_of` tells
// by device in which process it is, and empty that all are in one: a layer comes from the taker's
// own process where it can. Requires: every layer is held somewhere.
LayerMoves find_moves(const Holdings& held, const Holdings& wanted,
                      const std::vector<int>& process_of = {});

// Returns the sizes of the StateMemory blocks that devices of `states` copy into if the layers of
// `freezes` have no moments. Copies of layers that lie in another process are left out: they come
// in memory of their own. `states[d]` is what device `first + d` holds.
std::vector<Bytes> copied_blocks(const LayerMoves& moves, const std::vector<DeviceState>& states,
                                 DeviceId first, const std::vector<bool>& freezes);

// Returns the state of each layer at its first holder, in layer order. Requires: every layer is
// held somewhere.
std::vector<const LayerState*> first_holders(const std::vector<DeviceState>& states, int layers);

}  // namespace frazil
