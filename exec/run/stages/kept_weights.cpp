#include "exec/run/stages/kept_weights.h"

#include <ATen/ATen.h>

namespace frazil {

void KeptWeights::keep(LayerId layer, LayerState& state) {
  if (rule_ == WeightVersions::kSync) return;
  if (rule_ == WeightVersions::kTwoBuffered) {
    before_newest_[layer] = state.parameters;
    settle();
  }
  for (at::Tensor& parameter : state.parameters) {
    if (!parameter.requires_grad() || parameter.use_count() == 1) continue;
    if (memory_.is_open()) {
      const auto bytes = static_cast<std::int64_t>(parameter.nbytes());
      counted_.emplace_back(Watched(parameter.getIntrusivePtr()), bytes);
      memory_.change(MemoryKind::kParameters, bytes);
    }
    parameter = parameter.detach().clone().set_requires_grad(true);
  }
}

void KeptWeights::settle() {
  std::erase_if(counted_, [&](const auto& counted) {
    if (!counted.first.expired()) return false;
    memory_.change(MemoryKind::kParameters, -counted.second);
    return true;
  });
}

void KeptWeights::clear() {
  before_newest_.clear();
  settle();
}

}  // namespace frazil
