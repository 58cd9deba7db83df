#include "exec/measuring/layer_times.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "analysis/ratio_interval.h"

namespace frazil {
namespace {

Duration to_duration(double nanoseconds) {
  return Duration{std::llround(std::max(0.0, nanoseconds))};
}

Duration trimmed(const std::vector<double>& samples, double keep) {
  return samples.empty() ? Duration{0} : to_duration(trimmed_mean(samples, keep));
}

// Returns how long the device that was ready last waited before its last U; where some stages share
// statistics and others do not, the longest such wait of a stage. Devices of the stage that were
// ready earlier wait for this one too, which is no work of the step's end.
Duration find_wait_before_update(const std::vector<Span>& spans) {
  std::map<DeviceId, const Span*> updates;
  for (const Span& span : spans) {
    if (span.action.kind != ActionKind::kUpdate) continue;
    const Span*& last = updates[span.device];
    if (last == nullptr || last->start < span.start) last = &span;
  }
  std::map<StageId, Duration> shortest;
  for (const auto& [device, update] : updates) {
    std::optional<TimePoint> before;
    for (const Span& span : spans) {
      if (span.device != device || span.end > update->start) continue;
      before = std::max(before.value_or(span.end), span.end);
    }
    if (!before) continue;
    const Duration wait = update->start - *before;
    const auto [own, is_first] = shortest.emplace(update->action.stage, wait);
    if (!is_first) own->second = std::min(own->second, wait);
  }
  Duration longest{0};
  for (const auto& [stage, wait] : shortest) longest = std::max(longest, wait);
  return longest;
}

}  // namespace

void LayerTimes::add(const std::vector<LayerSample>& samples) {
  for (const LayerSample& sample : samples) {
    samples_[{sample.layer, sample.phase, sample.samples}].push_back(
        static_cast<double>(sample.duration.count()));
  }
}

bool LayerTimes::has(LayerId layer, LayerPhase phase, int samples) const {
  return samples_.contains({layer, phase, samples});
}

std::vector<int> LayerTimes::sizes(LayerId layer) const {
  std::vector<int> sizes;
  for (const auto& [key, values] : samples_) {
    const auto& [own, phase, size] = key;
    if (own == layer && phase == LayerPhase::kForward) sizes.push_back(size);
  }
  return sizes;
}

Duration LayerTimes::mean(LayerId layer, LayerPhase phase, int samples) const {
  const auto found = samples_.find({layer, phase, samples});
  return found == samples_.end() ? Duration{0} : trimmed(found->second, keep_);
}

Duration LayerTimes::forward_and_backward(LayerId layer, int samples) const {
  return mean(layer, LayerPhase::kForward, samples) + mean(layer, LayerPhase::kLoss, samples) +
         mean(layer, LayerPhase::kBackward, samples);
}

Duration LayerTimes::update(LayerId layer) const {
  return mean(layer, LayerPhase::kUpdate, 0) + mean(layer, LayerPhase::kStatistics, 0);
}

void OverheadMeter::add_step(Duration step_time, const std::vector<Span>& spans,
                             const std::vector<LayerSample>& samples) {
  Timeline timeline;
  double inside_actions = 0;
  double actions = 0;
  for (const Span& span : spans) {
    timeline.spans.push_back(span);
    if (span.action.kind != ActionKind::kForward && span.action.kind != ActionKind::kBackward) {
      continue;
    }
    inside_actions += static_cast<double>(span.duration().count());
    ++actions;
  }
  for (const LayerSample& sample : samples) {
    if (!ends_step(sample.phase)) {
      inside_actions -= static_cast<double>(sample.duration.count());
    }
  }
  if (actions > 0) per_action_.push_back(inside_actions / actions);
  const Duration beside = step_time - makespan(timeline) + find_wait_before_update(spans);
  per_step_.push_back(static_cast<double>(beside.count()));
}

Overheads OverheadMeter::overheads() const {
  return {trimmed(per_action_, keep_), trimmed(per_step_, keep_)};
}

}  // namespace frazil
