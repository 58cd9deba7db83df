#include "exec/measuring/recorder.h"

#include <iterator>
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
  span.start = to_time_point(start);
  span.end = to_time_point(end);
  return span;
}

// An action counts when it has been given to a device that the host runs ahead of, and once more
// when that has ended it.
void Recorder::add(const Action& action, Step step, Lane lane, const ActionStart& start) {
  if (enqueued_) {
    enqueued_->end_action(make_span(action, step, lane, start.time, start.time), action,
                          start.event);
    count_ended(1 + enqueued_->look());
    return;
  }
  spans_.push_back(make_span(action, step, lane, start.time, end_work()));
  count_ended(1);
}

void Recorder::count_ended(int actions) const {
  if (ended_ != nullptr) ended_->fetch_add(actions, std::memory_order_relaxed);
}

void Recorder::add_layer(LayerId layer, LayerPhase phase, int samples, SteadyTime start) {
  if (enqueued_) return enqueued_->end_phase({layer, phase, samples});
  layer_samples_.push_back(
      {layer, phase, samples, std::chrono::duration_cast<Duration>(end_work() - start)});
}

void Recorder::catch_up(const EnqueuedWork::Tell& tell) {
  if (!enqueued_) return;
  compute_.count_wait();
  enqueued_->catch_up(tell, [this] { count_ended(1); });
}

void Recorder::settle(const EnqueuedWork::Tell& tell) {
  if (!enqueued_) return;
  compute_.count_wait();
  enqueued_->settle(tell, [this] { count_ended(1); });
  std::vector<Span> spans = enqueued_->take_spans();
  spans_.insert(spans_.end(), std::make_move_iterator(spans.begin()),
                std::make_move_iterator(spans.end()));
  const std::vector<LayerSample> samples = enqueued_->take_layer_samples();
  layer_samples_.insert(layer_samples_.end(), samples.begin(), samples.end());
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
  for (LayerSample& sample : layer_samples_) sample.device = device_;
  return std::exchange(layer_samples_, {});
}

}  // namespace frazil
