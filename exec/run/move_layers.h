#pragma once
// Moves the state of layers between devices, in memory: no file is written and nothing is rebuilt.
// A transition has two phases. First every device sends what others take and receives what it takes
// itself, while all keep what they held. Then, if that went well everywhere, every device adopts
// what it has taken and lets go of what it gives up; otherwise what was taken is dropped and
// nothing has changed. Within a process a state that is handed over is the same memory.

#include <functional>
#include <vector>

#include "exec/communication/communicator.h"
#include "exec/state/layer_moves.h"
#include "planner/plan/activity.h"

namespace frazil {

// What a device has taken, until it is adopted.
struct TakenLayers {
  DeviceState layers;
  MoveReport report;
};

// The part of one device in the first phase.
struct LayerExchange {
  const LayerMoves& moves;
  DeviceId device;
  const DeviceState& state;               // what the device holds
  const std::vector<bool>& freezes;       // by layer: moments and sums are left behind
  std::function<bool(DeviceId)> is_here;  // is a device of this process
  StateMemory memory;                     // copies come from here
};

// Sends and receives the device's part. All devices of the run call it at the same time, with the
// same `moves`; `number` tells transitions apart in what is said of an error. Throws what the
// communicator throws, and std::bad_alloc.
TakenLayers exchange_layers(const LayerExchange& exchange, Communicator& communicator, Step number);

// Takes over `taken` into the device's state, lets go of what `moves` says it gives up, and freezes
// and thaws what it then holds. Returns what it gave up, for the device's thread to free.
std::vector<LayerState> adopt_layers(const LayerMoves& moves, DeviceId device, DeviceState taken,
                                     const Activity& activity, DeviceState& state);

// Turn a state into tensors and back. The first tensor says how many of each kind there are.
Tensors pack(const LayerState& state, bool freezes);
LayerState unpack(Tensors packed, const StateMemory& memory);

}  // namespace frazil
