#pragma once
// LayerState is what training keeps per layer, wherever the layer lives: parameters, running
// statistics, optimizer moments, the count of updates. State belongs to layers, never to stages, so
// a layer moves by handing its state over.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "exec/models/model.h"
#include "exec/state/state_memory.h"

namespace frazil {

struct LayerState {
  // Leaves, which require grad iff the layer is active and they are trainable.
  std::vector<at::Tensor> parameters;
  // The moments per trainable parameter; empty until the first update, and while the layer is
  // frozen.
  std::vector<at::Tensor> first_moment;   // Adam m, or the momentum buffer of SGD
  std::vector<at::Tensor> second_moment;  // Adam v
  std::int64_t updates = 0;
  // The layer's gradients added up since a freeze policy last read them; empty if no policy does.
  std::vector<at::Tensor> gradient_sums = {};
  StateMemory memory = {};                    // new moments and copies come from here
  std::vector<std::size_t> untrainable = {};  // positions in `parameters`, ascending
  std::vector<at::Tensor> statistics = {};    // those of LayerSpec::statistics
};

// The layers that a device holds.
using DeviceState = std::map<LayerId, LayerState>;

LayerState make_initial_state(const ModelSpec& model, LayerId layer, std::uint64_t seed,
                              const StateMemory& memory = {});
// Returns the positions of a layer's parameters that are not trainable.
std::vector<std::size_t> find_untrainable(const LayerSpec& layer);
// Returns the parameters that are trainable, in order: what gradients, moments and reduction are
// about.
Tensors trainable_parameters(const LayerState& state);
// Returns a deep copy, for a new replica.
LayerState clone(const LayerState& state);
Bytes bytes_of(const LayerState& state);
// Returns the bytes of moments and gradient sums: all that training alone needs.
Bytes bytes_of_moments(const LayerState& state);

// Marks the trainable parameters as leaves that train. If not `active`, none trains; moments,
// update count and gradient sums are dropped, and start anew if the layer thaws.
void set_active(LayerState& state, bool active);

// Returns the XXH64 hash over parameters, moments, the update count and statistics. Equal hash <=>
// equal bits (of what is hashed, up to collisions).
std::uint64_t hash_state(const LayerState& state);
// Returns the hash over these hashes, by layer, which layers may have that lie far apart.
std::uint64_t combine_hashes(const std::vector<std::uint64_t>& hashes);
// Returns the combined hash of layers 0.. in order: `states[l]` is the state of layer l.
std::uint64_t hash_states(const std::vector<const LayerState*>& states);

}  // namespace frazil
