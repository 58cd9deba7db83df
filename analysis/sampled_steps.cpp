#include "analysis/sampled_steps.h"

#include <fmt/format.h>

#include <algorithm>

namespace frazil {

std::optional<SampledSteps> find_sampled(const Timeline& measured, Step window) {
  const std::vector<Step> steps = steps_of(measured);
  if (steps.empty()) return std::nullopt;
  const std::vector<Step> windows = windows_of(measured, window);
  SampledSteps sampled{.count = static_cast<std::int64_t>(steps.size()),
                       .first = steps.front(),
                       .last = steps.back(),
                       .windows = static_cast<std::int64_t>(windows.size())};
  for (std::size_t i = 1; i < windows.size(); ++i) {
    const Step distance = windows[i] - windows[i - 1];
    sampled.every = sampled.every == 0 ? distance : std::min(sampled.every, distance);
  }
  return sampled;
}

std::string describe(const SampledSteps& sampled) {
  if (sampled.count == 1) return fmt::format("one sampled step, {}", sampled.first);
  const std::string reach = fmt::format("from step {} to step {}", sampled.first, sampled.last);
  if (sampled.windows < sampled.count) {
    return fmt::format("{} sampled steps, in {} {} {}", sampled.count, sampled.windows,
                       sampled.windows == 1 ? "window" : "windows", reach);
  }
  return fmt::format("{} sampled steps, one in {} {}", sampled.count, sampled.every, reach);
}

}  // namespace frazil
