#include "planner/freezing/run_shape.h"

#include <algorithm>

namespace frazil {

BlockId find_head(const ModelProfile& profile) {
  BlockId head{0};
  const auto note = [&](const Layer& layer) { head = std::max(head, layer.block); };
  for (const Layer& layer : profile.layers) {
    if (layer.trainable() > Bytes{0}) note(layer);
  }
  for (const TiedParameter& tied : profile.tied) {
    if (!tied.trainable) continue;
    for (const LayerId layer : tied.layers) note(profile.layers.at(layer.index()));
  }
  return head;
}

RunShape shape_run(const ModelProfile& profile, Step steps, Step steps_per_epoch,
                   std::uint64_t seed) {
  const int blocks = static_cast<int>(profile.blocks.size());
  return {.blocks = blocks,
          .untrained = blocks - 1 - find_head(profile).value,
          .steps = steps,
          .steps_per_epoch = steps_per_epoch,
          .seed = seed};
}

}  // namespace frazil
