// Part of planner/trajectory/plan_trajectory.h: the segments of a forecast, one for each of its
// masks.
#include "planner/trajectory/plan_trajectory.h"

#include <algorithm>

#include "profiles/error.h"

namespace frazil {

std::vector<ForecastSegment> find_segments(const FreezeTrace& trace, const std::string& file) {
  if (trace.steps < 1) {
    throw InputError(file, 1, "\"steps\": " + std::to_string(trace.steps), "at least one step");
  }
  std::vector<ForecastSegment> segments{
      {0, 0, FreezeMask::all_active(static_cast<int>(trace.blocks.size()))}};
  for (std::size_t i = 0; i < trace.events.size(); ++i) {
    const FreezeEvent& event = trace.events[i];
    const auto* const mask = std::get_if<MaskEvent>(&event.what);
    if (mask != nullptr && event.step > trace.steps) {
      const int line = static_cast<int>(i) + 2;  // after the header, one event per line
      throw InputError(file, line, "a mask at step " + std::to_string(event.step),
                       "one within the " + std::to_string(trace.steps) + " steps of the trace");
    }
    if (mask == nullptr || event.step >= trace.steps || mask->mask == segments.back().mask)
      continue;
    if (event.step == segments.back().step) {
      segments.back().mask = mask->mask;
    } else {
      segments.push_back({event.step, 0, mask->mask});
    }
  }
  // A mask that was taken back at once may leave equal neighbours.
  const auto same = [](const ForecastSegment& a, const ForecastSegment& b) {
    return a.mask == b.mask;
  };
  segments.erase(std::unique(segments.begin(), segments.end(), same), segments.end());
  for (std::size_t k = 0; k < segments.size(); ++k) {
    const Step end = k + 1 < segments.size() ? segments[k + 1].step : trace.steps;
    segments[k].steps = end - segments[k].step;
  }
  return segments;
}

}  // namespace frazil
