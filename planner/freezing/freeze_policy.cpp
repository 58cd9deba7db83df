#include "planner/freezing/freeze_policy.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "profiles/error.h"

namespace frazil {
namespace {

constexpr double kRoundingNoise = 1e-9;

FreezeMask decide(const NoFreeze&, Step, int blocks) { return FreezeMask::all_active(blocks); }

FreezeMask decide(const AlphaFreeze& policy, Step step, int blocks) {
  ENSURE(policy.interval >= 1, "a freeze interval is at least one step");
  const int layers = blocks - 2;
  if (step < policy.start || layers < 1) return FreezeMask::all_active(blocks);
  const Step index = (step - policy.start) / policy.interval;
  constexpr Step kLastIndex = std::numeric_limits<int>::max() - 1;
  const int frozen =
      alpha_frozen_layers(layers, policy.alpha, 1 + static_cast<int>(std::min(index, kLastIndex)));
  if (frozen == 0) return FreezeMask::all_active(blocks);
  return FreezeMask::frozen_prefix(blocks, BlockId{frozen});
}

}  // namespace

int alpha_frozen_layers(int layers, double alpha, int interval_index) {
  ENSURE(layers >= 0 && interval_index >= 0, "layers and intervals are counts");
  ENSURE(alpha > 0 && alpha < 1, "alpha lies between 0 and 1");
  const double bound = layers * (1 - std::pow(1 - alpha, interval_index));
  return std::clamp(static_cast<int>(std::ceil(bound - kRoundingNoise)), 0, layers);
}

double alpha_bound(int layers, double alpha, int interval_index) {
  double bound = 0;
  for (int interval = 1; interval <= interval_index; ++interval) {
    bound += alpha * (layers - bound);
  }
  return bound;
}

FreezeMask decide_mask(const FreezePolicy& policy, Step step, int blocks) {
  return std::visit([&](const auto& chosen) { return decide(chosen, step, blocks); }, policy);
}

}  // namespace frazil
