#include "exec/recorder.h"

#include <utility>

namespace frazil {

void Recorder::add(const Action& action, Step step, Lane lane, SteadyTime start) {
  const SteadyTime end = end_work();
  Span span;
  span.device = device_;
  span.lane = lane;
  span.action = action;
  span.action.step = step;
  span.start = TimePoint{std::chrono::duration_cast<Duration>(start - origin_)};
  span.end = TimePoint{std::chrono::duration_cast<Duration>(end - origin_)};
  spans_.push_back(std::move(span));
  if (ended_ != nullptr) ended_->fetch_add(1, std::memory_order_relaxed);
}

std::vector<Span> Recorder::take_spans() { return std::exchange(spans_, {}); }

std::vector<WeightRead> Recorder::take_weight_reads() { return std::exchange(weight_reads_, {}); }

std::vector<GradientSquares> Recorder::take_gradient_squares() {
  return std::exchange(squares_, {});
}

std::vector<LayerSample> Recorder::take_layer_samples() {
  return std::exchange(layer_samples_, {});
}

}  // namespace frazil
