#include "exec/run/move_layers.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "profiles/error.h"

namespace frazil {
namespace {

// Updates, then tensors of each of the five kinds. The places of untrainable parameters follow.
constexpr std::int64_t kCounts = 6;

Tag tag_of(LayerId layer, Step number) {
  return {.kind = MessageKind::kLayerState, .index = layer.value, .step = number};
}

void append(Tensors& packed, const Tensors& some) {
  packed.insert(packed.end(), some.begin(), some.end());
}

Tensors take_some(Tensors::iterator& next, std::int64_t count) {
  const auto end = next + count;
  Tensors some(std::make_move_iterator(next), std::make_move_iterator(end));
  next = end;
  return some;
}

}  // namespace

Tensors pack(const LayerState& state, bool freezes) {
  const auto count = [&](const Tensors& some) {
    return freezes ? 0 : static_cast<std::int64_t>(some.size());
  };
  std::vector<std::int64_t> head = {
      freezes ? 0 : state.updates, static_cast<std::int64_t>(state.parameters.size()),
      count(state.first_moment),   count(state.second_moment),
      count(state.gradient_sums),  static_cast<std::int64_t>(state.statistics.size())};
  head.insert(head.end(), state.untrainable.begin(), state.untrainable.end());
  Tensors packed{at::empty({static_cast<std::int64_t>(head.size())}, at::kLong)};
  std::copy(head.begin(), head.end(), packed[0].mutable_data_ptr<std::int64_t>());
  append(packed, state.parameters);
  append(packed, state.statistics);
  if (freezes) return packed;
  append(packed, state.first_moment);
  append(packed, state.second_moment);
  append(packed, state.gradient_sums);
  return packed;
}

LayerState unpack(Tensors packed, const StateMemory& memory) {
  ENSURE(!packed.empty() && packed[0].numel() >= kCounts, "a packed state begins with its counts");
  const at::Tensor head = packed[0].cpu();
  const auto* counts = head.const_data_ptr<std::int64_t>();
  const std::int64_t tensors = counts[1] + counts[2] + counts[3] + counts[4] + counts[5];
  ENSURE(std::all_of(counts, counts + kCounts, [](std::int64_t count) { return count >= 0; }) &&
             tensors + 1 == static_cast<std::int64_t>(packed.size()),
         "a packed state holds the tensors that it counts");
  LayerState state;
  auto next = packed.begin() + 1;
  state.parameters = take_some(next, counts[1]);
  state.statistics = take_some(next, counts[5]);
  state.first_moment = take_some(next, counts[2]);
  state.second_moment = take_some(next, counts[3]);
  state.gradient_sums = take_some(next, counts[4]);
  state.updates = counts[0];
  state.untrainable.assign(counts + kCounts, counts + head.numel());
  state.memory = memory;
  return state;
}

// Layer by layer, so that a device that must wait with a send waits for one that goes on: among all
// that wait, the one at the first layer never waits for another.
TakenLayers exchange_layers(const LayerExchange& exchange, Communicator& communicator,
                            Step number) {
  TakenLayers taken;
  for (const LayerMove& move : exchange.moves.moves) {
    const bool freezes = exchange.freezes[move.layer.index()];
    if (move.from == exchange.device) {
      communicator.send(move.to.value, tag_of(move.layer, number),
                        pack(exchange.state.at(move.layer), freezes));
    }
    if (move.to != exchange.device) continue;
    LayerState state =
        unpack(communicator.receive(move.from.value, tag_of(move.layer, number)), exchange.memory);
    // What comes from another process is a copy already.
    if (move.is_copy && exchange.is_here(move.from)) state = clone(state);
    const Bytes size = bytes_of(state);
    taken.report.moved += size;
    if (move.is_copy) taken.report.copied += size;
    ++(move.is_copy ? taken.report.layers_copied : taken.report.layers_handed_over);
    taken.layers.emplace(move.layer, std::move(state));
  }
  return taken;
}

std::vector<LayerState> adopt_layers(const LayerMoves& moves, DeviceId device, DeviceState taken,
                                     const Activity& activity, DeviceState& state) {
  std::vector<LayerState> given_up;
  for (const auto& [layer, giver] : moves.given_up) {
    if (giver == device) given_up.push_back(std::move(state.extract(layer).mapped()));
  }
  state.merge(taken);
  for (auto& [layer, own] : state) set_active(own, activity.layers[layer.index()].active);
  return given_up;
}

}  // namespace frazil
