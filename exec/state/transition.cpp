#include "exec/state/transition.h"

#include <algorithm>
#include <utility>

#include "planner/plan/plan_topology.h"
#include "profiles/error.h"

namespace frazil {
namespace {

std::size_t first_holder(const std::vector<DeviceState>& states, LayerId layer) {
  const auto holder = std::find_if(states.begin(), states.end(),
                                   [&](const DeviceState& state) { return state.contains(layer); });
  ENSURE(holder != states.end(), "every layer is held by some device");
  return static_cast<std::size_t>(holder - states.begin());
}

struct Copy {
  LayerId layer;
  std::size_t source = 0;
};
struct HandOver {
  LayerId layer;
  std::size_t giver = 0;
  std::size_t taker = 0;
};

// The moves of a transition: who copies what from whom, and what is handed over or freed when all
// copies are made.
struct Moves {
  std::vector<std::vector<Copy>> copies;  // by taker
  std::vector<HandOver> handed_over;
  std::vector<std::vector<LayerId>> freed;  // by giver
  MoveReport report;
};

void add_layer(Moves& moves, const std::vector<DeviceState>& states, LayerId layer,
               const std::vector<DeviceId>& wanted) {
  const std::size_t source = first_holder(states, layer);
  const Bytes size = bytes_of(states[source].at(layer));
  std::vector<std::size_t> givers;
  for (std::size_t d = 0; d < states.size(); ++d) {
    const bool stays = std::binary_search(wanted.begin(), wanted.end(), DeviceId{d});
    if (states[d].contains(layer) && !stays) givers.push_back(d);
  }
  std::vector<std::size_t> takers;
  for (const DeviceId device : wanted) {
    if (!states[device.index()].contains(layer)) takers.push_back(device.index());
  }
  MoveReport& report = moves.report;
  report.moved += size * static_cast<std::int64_t>(takers.size());
  for (; takers.size() > givers.size(); takers.pop_back()) {
    moves.copies[takers.back()].push_back({layer, source});
    report.copied += size;
    ++report.layers_copied;
  }
  for (const std::size_t taker : takers) {
    moves.handed_over.push_back({layer, givers.back(), taker});
    givers.pop_back();
    ++report.layers_handed_over;
  }
  for (const std::size_t giver : givers) moves.freed[giver].push_back(layer);
}

Moves find_moves(const std::vector<DeviceState>& states, const Plan& plan, int layers) {
  Moves moves{.copies = std::vector<std::vector<Copy>>(states.size()),
              .handed_over = {},
              .freed = std::vector<std::vector<LayerId>>(states.size()),
              .report = {}};
  const auto wanted = find_holding_devices(plan, static_cast<std::size_t>(layers));
  for (std::int32_t l = 0; l < layers; ++l) {
    add_layer(moves, states, LayerId{l}, wanted[LayerId{l}.index()]);
  }
  return moves;
}

// States by device; a device's list is for its thread alone to touch.
using Held = std::vector<std::vector<std::pair<LayerId, LayerState>>>;

Held copy_layers(const std::vector<DeviceState>& states, const Moves& moves,
                 const OnEveryDevice& on_every) {
  Held copied(states.size());
  on_every([&](DeviceId device) {
    for (const Copy& copy : moves.copies[device.index()]) {
      copied[device.index()].emplace_back(copy.layer, clone(states[copy.source].at(copy.layer)));
    }
  });
  return copied;
}

Held give_up(std::vector<DeviceState>& states, const Moves& moves) {
  Held given_up(states.size());
  for (std::size_t d = 0; d < states.size(); ++d) {
    for (const LayerId layer : moves.freed[d]) {
      given_up[d].emplace_back(layer, std::move(states[d].extract(layer).mapped()));
    }
  }
  return given_up;
}

bool is_empty(const std::vector<std::vector<LayerId>>& lists) {
  return std::all_of(lists.begin(), lists.end(), [](const auto& list) { return list.empty(); });
}

void one_after_another(const std::function<void(DeviceId)>& job, std::size_t devices) {
  for (std::size_t d = 0; d < devices; ++d) job(DeviceId{d});
}

}  // namespace

MoveReport move_layers(std::vector<DeviceState>& states, const Plan& plan, int layers,
                       const OnEveryDevice& on_every) {
  const auto run = [&](const std::function<void(DeviceId)>& job) {
    if (on_every) return on_every(job);
    one_after_another(job, states.size());
  };
  const Moves moves = find_moves(states, plan, layers);
  // Copies come first, while every old holder still has its tensors.
  Held copied(states.size());
  if (moves.report.layers_copied > 0) copied = copy_layers(states, moves, run);
  for (const HandOver& one : moves.handed_over) {
    states[one.taker].insert(states[one.giver].extract(one.layer));
  }
  for (std::size_t d = 0; d < states.size(); ++d) {
    for (auto& [layer, state] : copied[d]) states[d][layer] = std::move(state);
  }
  if (is_empty(moves.freed)) return moves.report;
  Held given_up = give_up(states, moves);
  run([&](DeviceId device) { given_up[device.index()].clear(); });
  return moves.report;
}

std::vector<Bytes> copied_blocks(const std::vector<DeviceState>& states, const Plan& plan,
                                 const std::vector<bool>& freezes) {
  const Moves moves = find_moves(states, plan, static_cast<int>(freezes.size()));
  std::vector<Bytes> blocks;
  for (const std::vector<Copy>& own : moves.copies) {
    for (const Copy& copy : own) {
      const LayerState& state = states[copy.source].at(copy.layer);
      blocks.push_back(StateMemory::block_of(state.parameters));
      if (freezes[copy.layer.index()]) continue;
      for (const Tensors* moment :
           {&state.first_moment, &state.second_moment, &state.gradient_sums}) {
        blocks.push_back(StateMemory::block_of(*moment));
      }
    }
  }
  std::erase(blocks, Bytes{});
  return blocks;
}

std::vector<const LayerState*> first_holders(const std::vector<DeviceState>& states, int layers) {
  std::vector<const LayerState*> holders;
  holders.reserve(static_cast<std::size_t>(layers));
  for (std::int32_t l = 0; l < layers; ++l) {
    holders.push_back(&states[first_holder(states, LayerId{l})].at(LayerId{l}));
  }
  return holders;
}

}  // namespace frazil
