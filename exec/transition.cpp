#include "exec/transition.h"

#include <algorithm>
#include <set>

#include "profiles/error.h"

namespace frazil {
namespace {

std::vector<std::set<std::size_t>> wanted_holders(const Plan& plan, int layers) {
  std::vector<std::set<std::size_t>> holders(static_cast<std::size_t>(layers));
  for (const Pipeline& pipeline : plan.pipelines) {
    for (const Stage& stage : pipeline.stages) {
      for (const LayerRange& range : stage.layers) {
        for (LayerId l = range.first; l <= range.last; ++l.value) {
          for (const DeviceId device : stage.devices) holders[l.index()].insert(device.index());
        }
      }
    }
  }
  return holders;
}

std::size_t first_holder(const std::vector<DeviceState>& states, LayerId layer) {
  const auto holder = std::find_if(states.begin(), states.end(),
                                   [&](const DeviceState& state) { return state.contains(layer); });
  ENSURE(holder != states.end(), "every layer is held by some device");
  return static_cast<std::size_t>(holder - states.begin());
}

void move_layer(std::vector<DeviceState>& states, LayerId layer,
                const std::set<std::size_t>& wanted, MoveReport& report) {
  const std::size_t source = first_holder(states, layer);
  const Bytes size = bytes_of(states[source].at(layer));
  std::vector<std::size_t> givers;
  for (std::size_t d = 0; d < states.size(); ++d) {
    if (states[d].contains(layer) && !wanted.contains(d)) givers.push_back(d);
  }
  std::vector<std::size_t> takers;
  for (const std::size_t device : wanted) {
    if (!states[device].contains(layer)) takers.push_back(device);
  }
  report.moved += size * static_cast<std::int64_t>(takers.size());
  // Copies first, while every old holder still has its tensors.
  for (; takers.size() > givers.size(); takers.pop_back()) {
    states[takers.back()][layer] = clone(states[source].at(layer));
    ++report.layers_copied;
  }
  for (const std::size_t taker : takers) {
    states[taker].insert(states[givers.back()].extract(layer));
    givers.pop_back();
    ++report.layers_handed_over;
  }
  for (const std::size_t giver : givers) states[giver].erase(layer);
}

}  // namespace

MoveReport move_layers(std::vector<DeviceState>& states, const Plan& plan, int layers) {
  MoveReport report;
  const std::vector<std::set<std::size_t>> wanted = wanted_holders(plan, layers);
  for (std::int32_t l = 0; l < layers; ++l) {
    move_layer(states, LayerId{l}, wanted[LayerId{l}.index()], report);
  }
  return report;
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
