#include "analysis/sampled_steps.h"

#include <fmt/format.h>

#include <algorithm>

namespace frazil {

std::optional<SampledSteps> find_sampled(const Timeline& measured) {
  const std::vector<Step> steps = steps_of(measured);
  if (steps.empty()) return std::nullopt;
  SampledSteps sampled{static_cast<std::int64_t>(steps.size()), steps.front(), steps.back(), 0};
  for (std::size_t i = 1; i < steps.size(); ++i) {
    const Step distance = steps[i] - steps[i - 1];
    sampled.every = sampled.every == 0 ? distance : std::min(sampled.every, distance);
  }
  return sampled;
}

std::string describe(const SampledSteps& sampled) {
  if (sampled.count == 1) return fmt::format("one sampled step, {}", sampled.first);
  return fmt::format("{} sampled steps, one in {} from step {} to step {}", sampled.count,
                     sampled.every, sampled.first, sampled.last);
}

}  // namespace frazil
