#include "exec/state/layer_moves.h"

#include <algorithm>
#include <iterator>

#include "profiles/error.h"

namespace frazil {
namespace {

std::vector<DeviceId> without(const std::vector<DeviceId>& devices,
                              const std::vector<DeviceId>& others) {
  std::vector<DeviceId> left;
  std::set_difference(devices.begin(), devices.end(), others.begin(), others.end(),
                      std::back_inserter(left));
  return left;
}

class MoveFinder {
 public:
  explicit MoveFinder(const std::vector<int>& process_of) : process_of_(process_of) {}

  void add_layer(LayerId layer, const std::vector<DeviceId>& held,
                 const std::vector<DeviceId>& wanted) {
    ENSURE(!held.empty(), "every layer is held by some device");
    std::vector<DeviceId> givers = without(held, wanted);
    for (const DeviceId giver : givers) moves_.given_up.emplace_back(layer, giver);
    std::vector<DeviceId> takers = without(wanted, held);
    // Layers that can stay in their process are dealt with first.
    for (std::size_t t = takers.size(); t-- > 0;) {
      const auto giver = std::find_if(givers.rbegin(), givers.rend(), [&](DeviceId device) {
        return process_of(device) == process_of(takers[t]);
      });
      if (process_of_.empty() || giver == givers.rend()) continue;
      moves_.moves.push_back({layer, *giver, takers[t]});
      givers.erase(std::next(giver).base());
      takers.erase(takers.begin() + static_cast<std::ptrdiff_t>(t));
    }
    for (; takers.size() > givers.size(); takers.pop_back()) {
      moves_.moves.push_back(
          {layer, find_source(held, takers.back()), takers.back(), /*is_copy=*/true});
    }
    for (const DeviceId taker : takers) {
      moves_.moves.push_back({layer, givers.back(), taker});
      givers.pop_back();
    }
  }

  LayerMoves take() { return std::move(moves_); }

 private:
  int process_of(DeviceId device) const {
    return process_of_.empty() ? 0 : process_of_.at(device.index());
  }

  DeviceId find_source(const std::vector<DeviceId>& held, DeviceId taker) const {
    const auto near = std::find_if(held.begin(), held.end(), [&](DeviceId device) {
      return process_of(device) == process_of(taker);
    });
    return near == held.end() ? held.front() : *near;
  }

  const std::vector<int>& process_of_;
  LayerMoves moves_;
};

std::size_t first_holder(const std::vector<DeviceState>& states, LayerId layer) {
  const auto holder = std::find_if(states.begin(), states.end(),
                                   [&](const DeviceState& state) { return state.contains(layer); });
  ENSURE(holder != states.end(), "every layer is held by some device");
  return static_cast<std::size_t>(holder - states.begin());
}

}  // namespace

MoveReport& MoveReport::operator+=(const MoveReport& other) {
  layers_handed_over += other.layers_handed_over;
  layers_copied += other.layers_copied;
  moved += other.moved;
  copied += other.copied;
  return *this;
}

LayerMoves find_moves(const Holdings& held, const Holdings& wanted,
                      const std::vector<int>& process_of) {
  ENSURE(held.size() == wanted.size(), "both tell of every layer");
  MoveFinder finder(process_of);
  for (std::size_t l = 0; l < held.size(); ++l) finder.add_layer(LayerId{l}, held[l], wanted[l]);
  return finder.take();
}

std::vector<Bytes> copied_blocks(const LayerMoves& moves, const std::vector<DeviceState>& states,
                                 DeviceId first, const std::vector<bool>& freezes) {
  const auto is_here = [&](DeviceId device) {
    return device >= first && device.index() < first.index() + states.size();
  };
  std::vector<Bytes> blocks;
  for (const LayerMove& move : moves.moves) {
    if (!move.is_copy || !is_here(move.from) || !is_here(move.to)) continue;
    const LayerState& state = states[move.from.index() - first.index()].at(move.layer);
    blocks.push_back(StateMemory::block_of(state.parameters));
    blocks.push_back(StateMemory::block_of(state.statistics));
    if (freezes[move.layer.index()]) continue;
    for (const Tensors* moment :
         {&state.first_moment, &state.second_moment, &state.gradient_sums}) {
      blocks.push_back(StateMemory::block_of(*moment));
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
