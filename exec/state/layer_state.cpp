#define XXH_INLINE_ALL
#include "exec/state/layer_state.h"

#include <ATen/ATen.h>
#include <xxhash.h>

#include <algorithm>

#include "exec/tensors/tensor_bytes.h"
#include "profiles/error.h"

namespace frazil {
namespace {

Tensors clone_all(const Tensors& tensors, const StateMemory& memory) {
  Tensors copies = memory.copy(tensors);
  for (std::size_t i = 0; i < copies.size(); ++i) {
    copies[i].set_requires_grad(tensors[i].requires_grad());
  }
  return copies;
}

void hash_all(XXH64_state_t& hash, const std::vector<at::Tensor>& tensors) {
  for (const at::Tensor& tensor : tensors) {
    ENSURE(tensor.is_contiguous(), "state tensors are contiguous");
    XXH64_update(&hash, tensor.cpu().const_data_ptr(), tensor.nbytes());
  }
}

}  // namespace

LayerState make_initial_state(const ModelSpec& model, LayerId layer, std::uint64_t seed,
                              const StateMemory& memory) {
  LayerState state;
  state.memory = memory;
  state.parameters = memory.copy(initial_parameters(model, layer, seed));
  state.untrainable = find_untrainable(model.layers[layer.index()]);
  state.statistics = memory.copy(initial_statistics(model.layers[layer.index()]));
  set_active(state, true);
  return state;
}

std::vector<std::size_t> find_untrainable(const LayerSpec& layer) {
  std::vector<std::size_t> found;
  for (std::size_t p = 0; p < layer.parameters.size(); ++p) {
    if (!layer.parameters[p].trainable) found.push_back(p);
  }
  return found;
}

Tensors trainable_parameters(const LayerState& state) {
  Tensors trainable = state.parameters;
  for (auto p = state.untrainable.rbegin(); p != state.untrainable.rend(); ++p) {
    trainable.erase(trainable.begin() + static_cast<std::ptrdiff_t>(*p));
  }
  return trainable;
}

LayerState clone(const LayerState& state) {
  const StateMemory& memory = state.memory;
  return {.parameters = clone_all(state.parameters, memory),
          .first_moment = clone_all(state.first_moment, memory),
          .second_moment = clone_all(state.second_moment, memory),
          .updates = state.updates,
          .gradient_sums = clone_all(state.gradient_sums, memory),
          .memory = memory,
          .untrainable = state.untrainable,
          .statistics = memory.copy(state.statistics)};
}

Bytes bytes_of(const LayerState& state) {
  return Bytes{count_bytes(state.parameters) + count_bytes(state.statistics)} +
         bytes_of_moments(state);
}

Bytes bytes_of_moments(const LayerState& state) {
  return Bytes{count_bytes(state.first_moment) + count_bytes(state.second_moment) +
               count_bytes(state.gradient_sums)};
}

void set_active(LayerState& state, bool active) {
  for (std::size_t p = 0; p < state.parameters.size(); ++p) {
    const bool trains = !std::binary_search(state.untrainable.begin(), state.untrainable.end(), p);
    state.parameters[p].set_requires_grad(active && trains);
  }
  if (active) return;
  // Frozen parameters are absent from the optimizer; if they thaw, their moments start anew.
  state.first_moment.clear();
  state.second_moment.clear();
  state.updates = 0;
  state.gradient_sums.clear();
}

std::uint64_t hash_state(const LayerState& state) {
  XXH64_state_t hash;
  XXH64_reset(&hash, 0);
  hash_all(hash, state.parameters);
  hash_all(hash, state.first_moment);
  hash_all(hash, state.second_moment);
  XXH64_update(&hash, &state.updates, sizeof state.updates);
  hash_all(hash, state.statistics);
  return XXH64_digest(&hash);
}

std::uint64_t combine_hashes(const std::vector<std::uint64_t>& hashes) {
  return XXH64(hashes.data(), hashes.size() * sizeof(std::uint64_t), 0);
}

std::uint64_t hash_states(const std::vector<const LayerState*>& states) {
  std::vector<std::uint64_t> hashes;
  hashes.reserve(states.size());
  for (const LayerState* state : states) hashes.push_back(hash_state(*state));
  return combine_hashes(hashes);
}

}  // namespace frazil
