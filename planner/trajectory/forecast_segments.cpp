#include "planner/trajectory/forecast_segments.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "planner/prediction/answer_parts.h"
#include "profiles/error.h"

namespace frazil {
namespace {

// Events stand one a line, after the header.
int line_of_event(std::size_t event) { return static_cast<int>(event) + 2; }

struct DriftPlace {
  const std::string& file;
  int line = 0;

  void check(const std::vector<std::int64_t>& ppm, std::size_t wanted, std::string_view noun,
             std::string_view of) const {
    if (ppm.size() != wanted) {
      throw InputError(
          file, line, "a drift of " + count_of(static_cast<std::int64_t>(ppm.size()), noun),
          fmt::format("one of the {}'s {}, or a trace without lines of kind x-drift", of, wanted));
    }
    for (const std::int64_t each : ppm) {
      if (each >= 1 && each <= kLargestTimePpm) continue;
      throw InputError(file, line, fmt::format("a {} that takes {} millionths", noun, each),
                       fmt::format("1 to {}", kLargestTimePpm));
    }
  }
};

CostScales read_scales(const DriftEvent& drift, const DriftPlace& place, Setting setting) {
  place.check(drift.devices_ppm, setting.cluster().devices.size(), "device", "cluster");
  place.check(drift.layers_ppm, setting.profile().layers.size(), "layer", "profile");
  CostScales scales{.device_ppm = drift.devices_ppm, .layer_ppm = drift.layers_ppm};
  return changes_nothing(scales) ? CostScales{} : scales;
}

// Has the segments take these costs from a step on, and splits the one in which it lies.
void begin_costs(std::vector<ForecastSegment>& segments, Step step, const CostScales& scales) {
  auto place = std::find_if(segments.begin(), segments.end(), [&](const ForecastSegment& segment) {
    return segment.step + segment.steps > step;
  });
  if (place->step < step) {
    ForecastSegment rest = *place;
    rest.steps = place->step + place->steps - step;
    rest.step = step;
    place->steps -= rest.steps;
    place = segments.insert(place + 1, std::move(rest));
  }
  for (; place != segments.end(); ++place) place->scales = scales;
}

// Joins neighbours that do not differ.
void join_alike(std::vector<ForecastSegment>& segments) {
  std::vector<ForecastSegment> joined;
  for (ForecastSegment& segment : segments) {
    const bool is_alike = !joined.empty() && joined.back().mask == segment.mask &&
                          joined.back().scales == segment.scales;
    if (is_alike) {
      joined.back().steps += segment.steps;
    } else {
      joined.push_back(std::move(segment));
    }
  }
  segments = std::move(joined);
}

// Returns "device 1 takes 1.30 x" for each that takes another time than is said.
void list_changed(const std::vector<std::int64_t>& ppm, std::string_view noun,
                  std::string& changed) {
  for (std::size_t i = 0; i < ppm.size(); ++i) {
    if (ppm[i] == kMillion) continue;
    changed += fmt::format("{}{} {} takes {:.2f} x", changed.empty() ? "" : ", ", noun, i,
                           static_cast<double>(ppm[i]) / static_cast<double>(kMillion));
  }
}

}  // namespace

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
      const int line = line_of_event(i);
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

std::vector<ForecastSegment> split_at_drifts(std::vector<ForecastSegment> segments,
                                             const FreezeTrace& trace, const std::string& file,
                                             Setting setting) {
  for (std::size_t i = 0; i < trace.events.size(); ++i) {
    const FreezeEvent& event = trace.events[i];
    const auto* const drift = std::get_if<DriftEvent>(&event.what);
    if (drift == nullptr) continue;
    const DriftPlace place{file, line_of_event(i)};
    if (event.step > trace.steps) {
      throw InputError(file, place.line, fmt::format("a drift at step {}", event.step),
                       fmt::format("one within the {} steps of the trace", trace.steps));
    }
    const CostScales scales = read_scales(*drift, place, setting);
    if (event.step < trace.steps) begin_costs(segments, event.step, scales);
  }
  join_alike(segments);
  return segments;
}

std::vector<std::string> tell_measured_costs(const std::vector<ForecastSegment>& segments) {
  std::vector<std::string> told;
  CostScales known;
  for (const ForecastSegment& segment : segments) {
    if (segment.scales == known) continue;
    known = segment.scales;
    std::string changed;
    list_changed(known.device_ppm, "device", changed);
    list_changed(known.layer_ppm, "layer", changed);
    told.push_back(
        known.is_empty()
            ? fmt::format("from step {} on costs are those of profile and cluster again",
                          segment.step)
            : fmt::format("from step {} on {}, as the run measured beside its profile and "
                          "cluster; that is hindsight, not known before",
                          segment.step, changed));
  }
  return told;
}

}  // namespace frazil
