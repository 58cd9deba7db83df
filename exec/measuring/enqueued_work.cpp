#include "exec/measuring/enqueued_work.h"

#include <algorithm>
#include <utility>

namespace frazil {
namespace {

constexpr bool kTimed = true;

// Reductions and norms are work of the device.
DeviceLane stream_of(Lane lane) {
  switch (lane) {
    case Lane::kSend:
      return DeviceLane::kSend;
    case Lane::kReceive:
      return DeviceLane::kReceive;
    case Lane::kCompute:
    case Lane::kCollective:
    case Lane::kHost:
      return DeviceLane::kCompute;
  }
  return DeviceLane::kCompute;
}

}  // namespace

void EnqueuedWork::begin(TimePoint now) {
  parts_.clear();
  phases_.clear();
  spans_.clear();
  samples_.clear();
  ended_ = 0;
  begin_time_ = worked_until_ = now;
  begin_ = phase_begin_ = lanes_.record(DeviceLane::kCompute, kTimed);
}

DeviceEvent EnqueuedWork::begin_action(Lane lane) {
  DeviceEvent start = lanes_.record(stream_of(lane), kTimed);
  if (stream_of(lane) == DeviceLane::kCompute) phase_begin_ = start;
  return start;
}

void EnqueuedWork::end_action(Span span, const Action& source, DeviceEvent start) {
  DeviceEvent end = lanes_.record(stream_of(span.lane), kTimed);
  parts_.push_back({std::move(span), &source, std::move(start), std::move(end)});
}

void EnqueuedWork::end_phase(const LayerSample& sample) {
  DeviceEvent end = lanes_.record(DeviceLane::kCompute, kTimed);
  phases_.push_back({sample, std::exchange(phase_begin_, end), end});
}

int EnqueuedWork::look() {
  const std::size_t before = ended_;
  while (ended_ < parts_.size() && parts_[ended_].end.has_passed()) close(parts_[ended_++]);
  return static_cast<int>(ended_ - before);
}

void EnqueuedWork::catch_up(const Tell& tell, const std::function<void()>& on_end) {
  while (ended_ < parts_.size()) {
    Part& part = parts_[ended_];
    tell(part.source);
    lanes_.wait_for(part.end);
    close(part);
    ++ended_;
    on_end();
  }
}

void EnqueuedWork::settle(const Tell& tell, const std::function<void()>& on_end) {
  const DeviceEvent last = lanes_.record(DeviceLane::kCompute);
  catch_up(tell, on_end);
  tell(nullptr);
  lanes_.wait_for(last);
  for (Phase& phase : phases_) {
    phase.sample.duration = Duration{phase.end.time_since(phase.start)};
    samples_.push_back(phase.sample);
  }
  phases_.clear();
  parts_.clear();
  ended_ = 0;
}

const Action* EnqueuedWork::find_failed() const {
  for (std::size_t i = ended_; i < parts_.size(); ++i) {
    try {
      (void)parts_[i].end.has_passed();
    } catch (...) {
      return parts_[i].source;
    }
  }
  return nullptr;
}

TimePoint EnqueuedWork::time_of(const DeviceEvent& event) const {
  return begin_time_ + Duration{event.time_since(begin_)};
}

// A message begins to be sent or awaited when the work before it in the list has ended, though its
// lane has been told of it before.
void EnqueuedWork::close(Part& part) {
  Span& span = part.span;
  span.end = time_of(part.end);
  span.start = time_of(part.start);
  if (stream_of(span.lane) == DeviceLane::kCompute) {
    worked_until_ = span.end;
  } else {
    span.start = std::min(std::max(span.start, worked_until_), span.end);
  }
  spans_.push_back(std::move(span));
  part.start = part.end = {};
}

std::vector<Span> EnqueuedWork::take_spans() { return std::exchange(spans_, {}); }

std::vector<LayerSample> EnqueuedWork::take_layer_samples() { return std::exchange(samples_, {}); }

}  // namespace frazil
