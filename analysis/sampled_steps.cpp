#include "analysis/sampled_steps.h"

#include <fmt/format.h>

#include <algorithm>

namespace frazil {

std::optional<SampledSteps> find_sampled(const Timeline& measured) {
  const std::vector<Step> steps = steps_of(measured);
  if (steps.empty()) return std::nullopt;
  SampledSteps sampled{.count = static_cast<std::int64_t>(steps.size()),
                       .first = steps.front(),
                       .last = steps.back(),
                       .samples = 1};
  Step sample = steps.front();
  for (std::size_t i = 1; i < steps.size(); ++i) {
    if (steps[i] == steps[i - 1] + 1) continue;
    const Step distance = steps[i] - sample;
    sampled.every = sampled.every == 0 ? distance : std::min(sampled.every, distance);
    sample = steps[i];
    ++sampled.samples;
  }
  return sampled;
}

std::string describe(const SampledSteps& sampled) {
  if (sampled.count == 1) return fmt::format("one sampled step, {}", sampled.first);
  const std::string reach = fmt::format("from step {} to step {}", sampled.first, sampled.last);
  if (sampled.samples == 1) return fmt::format("{} sampled steps, all {}", sampled.count, reach);
  if (sampled.samples < sampled.count) {
    return fmt::format("{} sampled steps, in {} windows {}", sampled.count, sampled.samples, reach);
  }
  return fmt::format("{} sampled steps, one in {} {}", sampled.count, sampled.every, reach);
}

}  // namespace frazil
