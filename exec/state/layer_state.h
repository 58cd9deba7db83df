#pragma once
// What training keeps per layer, wherever the layer lives: parameters, optimizer moments, count of
// updates. State belongs to layers, never to stages, so a layer moves by handing its state over.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "exec/models/model.h"
#include "exec/state/state_memory.h"

namespace frazil {

struct LayerState {
  std::vector<at::Tensor> parameters;  // leaves; requires_grad iff the layer is active
  // Per parameter; empty until the first update, and for good once the layer is frozen.
  std::vector<at::Tensor> first_moment;   // Adam m, or the momentum buffer of SGD
  std::vector<at::Tensor> second_moment;  // Adam v
  std::int64_t updates = 0;
  // The layer's gradients added up since a freeze policy last read them; empty where none does.
  std::vector<at::Tensor> gradient_sums = {};
  StateMemory memory = {};  // that new moments and copies come from
};

// The layers a device holds.
using DeviceState = std::map<LayerId, LayerState>;

LayerState make_initial_state(const ModelSpec& model, LayerId layer, std::uint64_t seed,
                              const StateMemory& memory = {});
// A deep copy, for a new replica.
LayerState clone(const LayerState& state);
Bytes bytes_of(const LayerState& state);
Bytes bytes_of_moments(const LayerState& state);  // and sums: what it keeps besides parameters

// Marks parameters as leaves that train, or drops what a frozen layer does not need any more.
void set_active(LayerState& state, bool active);

// XXH64 over parameters, moments and update counts of layers 0.. in order: `states[l]` is the state
// of layer l. Equal hash <=> equal bits (of what is hashed, up to collisions).
std::uint64_t hash_states(const std::vector<const LayerState*>& states);

}  // namespace frazil
