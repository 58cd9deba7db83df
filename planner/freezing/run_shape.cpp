#include "planner/freezing/run_shape.h"

#include <vector>

namespace frazil {

RunShape shape_run(const ModelProfile& profile, Step steps, Step steps_per_epoch,
                   std::uint64_t seed) {
  std::vector<bool> trains(profile.blocks.size());
  const auto note = [&](const Layer& layer) {
    trains.at(static_cast<std::size_t>(layer.block.value)) = true;
  };
  for (const Layer& layer : profile.layers) {
    if (layer.trainable() > Bytes{0}) note(layer);
  }
  for (const TiedParameter& tied : profile.tied) {
    for (const LayerId layer : tied.layers) {
      if (tied.trainable) note(profile.layers.at(static_cast<std::size_t>(layer.value)));
    }
  }
  int last = static_cast<int>(trains.size()) - 1;
  while (last > 0 && !trains[static_cast<std::size_t>(last)]) --last;
  return {.blocks = static_cast<int>(trains.size()),
          .untrained = static_cast<int>(trains.size()) - 1 - last,
          .steps = steps,
          .steps_per_epoch = steps_per_epoch,
          .seed = seed};
}

}  // namespace frazil
