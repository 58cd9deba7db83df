#include "planner/transitions/cache_residency.h"

#include <algorithm>

#include "planner/plan/activity.h"

namespace frazil {
namespace {

constexpr Step kMostForeseen = 1'000'000;

}  // namespace

std::optional<std::vector<TracedMask>> foresee_masks(const FreezeConfig& config,
                                                     const RunShape& run) {
  if (!needed_signals(config).empty() || needs_prediction(config) || run.steps > kMostForeseen) {
    return std::nullopt;
  }
  FreezeAuthority authority(config, run);
  std::vector<TracedMask> masks;
  for (Step step = 0; step < run.steps; ++step) {
    const Decision decision = authority.decide({.step = step});
    if (decision.changed) masks.push_back({step, decision.mask});
  }
  return masks;
}

Step count_resident_steps(const std::optional<std::vector<TracedMask>>& forecast,
                          const RunShape& run, const ModelProfile& profile, Step step, int depth) {
  Step end = run.steps;
  if (forecast) {
    for (const TracedMask& mask : *forecast) {
      if (mask.step <= step || mask.step >= end) continue;
      const int prefix = count_frozen_prefix(profile, find_activity(profile, mask.mask));
      if (prefix < depth) end = mask.step;
      if (prefix > depth) end = std::min(end, mask.step + run.steps_per_epoch);
    }
  }
  return std::max<Step>(0, end - step);
}

}  // namespace frazil
