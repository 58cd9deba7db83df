#include "exec/measuring/recorder.h"

#include <utility>

#include "traces/action.h"

namespace frazil {

Span Recorder::make_span(const Action& action, Step step, Lane lane, SteadyTime start,
                         SteadyTime end) const {
  Span span;
  span.device = device_;
  span.lane = lane;
  span.action = action;
  set_step(span.action, step);
  span.start = TimePoint{std::chrono::duration_cast<Duration>(start - origin_)};
  span.end = TimePoint{std::chrono::duration_cast<Duration>(end - origin_)};
  return span;
}

void Recorder::add(const Action& action, Step step, Lane lane, SteadyTime start) {
  spans_.push_back(make_span(action, step, lane, start, end_work()));
  if (ended_ != nullptr) ended_->fetch_add(1, std::memory_order_relaxed);
}

void Recorder::add_inside(const Action& action, Step step, SteadyTime start) {
  spans_.push_back(make_span(action, step, Lane::kHost, start, now()));
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
