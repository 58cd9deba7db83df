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
  const auto holder = std::find_if(states.begin(), states.end(), [&](const DeviceState& state) {
    return state.contains(layer);
  });
  ENSURE(holder != states.end(), "every layer is held by some device");
  return static_cast<std::size_t>(holder - states.begin());
}

void move_layer(std::vector<DeviceState>& states, LayerId layer,
                const std::set<std::size_t>& wanted, MoveReport& report) {
  const std::size_t source = first_holder(states, layer);
  const Bytes size = bytes_of(states[source].at(layer));
  bool source_is_free = !wanted.contains(source);
  for (const std::size_t device : wanted) {
    if (states[device].contains(layer)) continue;
    report.moved += size;
    if (source_is_free && device == *wanted.rbegin()) {
      // The last taker gets the source's own tensors; copies for the others were made before.
      states[device].insert(states[source].extract(layer));
      source_is_free = false;
      ++report.layers_handed_over;
    } else {
      states[device][layer] = clone(states[source].at(layer));
      ++report.layers_copied;
    }
  }
  for (std::size_t d = 0; d < states.size(); ++d) {
    if (!wanted.contains(d)) states[d].erase(layer);
  }
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
  for (std::int32_t l = 0; l < layers; ++l) {
    holders.push_back(&states[first_holder(states, LayerId{l})].at(LayerId{l}));
  }
  return holders;
}

}  // namespace frazil
