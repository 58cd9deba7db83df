#include "planner/freezing/signal_memory.h"

#include <algorithm>
#include <vector>

namespace frazil {

ModelProfile with_signal_memory(ModelProfile profile, const FreezeConfig& config) {
  const std::vector<Signal> needed = needed_signals(config);
  const bool keeps_sums =
      std::find(needed.begin(), needed.end(), Signal::kIntervalGradients) != needed.end();
  if (!keeps_sums) return profile;
  for (Layer& layer : profile.layers) layer.optimizer_state += layer.trainable();
  return profile;
}

}  // namespace frazil
