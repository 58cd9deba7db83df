#pragma once
// A recorder keeps what one device measures: spans of actions and, when asked for, the times of
// each layer's phases and the memory of a step. Every device has a recorder of its own, to which
// its thread alone writes. Of a device that the host runs ahead of, times come from events, and are
// there once a step is settled.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "exec/devices/compute_device.h"
#include "exec/devices/steady_time.h"
#include "exec/measuring/enqueued_work.h"
#include "exec/measuring/layer_sample.h"
#include "exec/measuring/memory_account.h"
#include "exec/state/weight_versions.h"
#include "profiles/units.h"
#include "traces/timeline.h"

namespace frazil {

// The sum of squares of a layer's gradients, added in double over its parameters in order.
struct GradientSquares {
  LayerId layer;
  double value = 0;
};

// Tells what to measure beside spans. `slow_layer` is for the self-test of frazil verify, and
// `slow_device` for tests of costs that drift: that layer, or each layer on that device, spins for
// `slow_percent` of its own time after each phase.
struct Measurement {
  bool layers = false;
  // Runs the backwards of every second step as I and W in two passes and times each pass.
  bool split_backward = false;
  bool memory = false;
  // Both read the gradients as they come out of the reduction, before clipping: the first adds up
  // the squares of each layer's gradients, the second adds gradients over the steps in
  // LayerState::gradient_sums.
  bool gradient_squares = false;
  bool gradient_sums = false;
  int slow_layer = -1;
  int slow_percent = 0;
  int slow_device = -1;
  friend bool operator==(const Measurement&, const Measurement&) = default;
};

// Where an action begins: a time or, on a device that the host runs ahead of, an event.
struct ActionStart {
  SteadyTime time;
  DeviceEvent event = {};
};

class Recorder {
 public:
  // `ended`, where given, counts the finished actions of all devices, for a thread that watches the
  // step.
  Recorder(DeviceId device, SteadyTime origin, const ComputeDevice& compute = {},
           std::atomic<std::int64_t>* ended = nullptr)
      : device_(device), origin_(origin), compute_(compute), ended_(ended) {
    if (compute.lanes() != nullptr) enqueued_.emplace(*compute.lanes());
  }

  DeviceId device() const { return device_; }
  const ComputeDevice& compute() const { return compute_; }
  SteadyTime now() const { return std::chrono::steady_clock::now(); }
  // Waits until the device has done what it was given and returns the time then. A CPU core never
  // has to wait. Throws as ComputeDevice::finish().
  SteadyTime end_work() const {
    compute_.finish();
    return now();
  }
  // Begins a step. Requires: the device has done all that it was given.
  void begin_step() {
    if (enqueued_) enqueued_->begin(to_time_point(now()));
  }
  // Begins an action.
  ActionStart begin(Lane lane) {
    return {now(), enqueued_ ? enqueued_->begin_action(lane) : DeviceEvent()};
  }
  // Records the span of an action, which ends when its work does; `action` must live until the step
  // is settled. Throws as end_work() where that waits, else the GPU's error.
  void add(const Action& action, Step step, Lane lane, const ActionStart& start);
  // Records the span of host work inside another action, on the host's lane. The work is done.
  void add_inside(const Action& action, Step step, SteadyTime start);
  // Records a phase of a layer that began at `start` and ends now.
  void add_layer(LayerId layer, LayerPhase phase, int samples, SteadyTime start);
  // Wait until the device has done the actions recorded so far, or all of the step; `tell` is told
  // which action is waited for. Do nothing where the host does not run ahead. Throw as end_work().
  void catch_up(const EnqueuedWork::Tell& tell);
  void settle(const EnqueuedWork::Tell& tell);
  // Returns the action at which the GPU has failed, if it has.
  const Action* find_failed() const { return enqueued_ ? enqueued_->find_failed() : nullptr; }

  MemoryAccount& memory() { return memory_; }

  void add_gradient_squares(const GradientSquares& squares) { squares_.push_back(squares); }
  void add_weight_read(const WeightRead& read) { weight_reads_.push_back(read); }

  std::vector<Span> take_spans();
  std::vector<WeightRead> take_weight_reads();
  std::vector<LayerSample> take_layer_samples();
  std::vector<GradientSquares> take_gradient_squares();

 private:
  TimePoint to_time_point(SteadyTime time) const {
    return TimePoint{std::chrono::duration_cast<Duration>(time - origin_)};
  }
  Span make_span(const Action& action, Step step, Lane lane, SteadyTime start,
                 SteadyTime end) const;
  void count_ended(int actions) const;

  DeviceId device_;
  SteadyTime origin_;
  ComputeDevice compute_;
  std::atomic<std::int64_t>* ended_;
  std::optional<EnqueuedWork> enqueued_;  // if the host runs ahead of the device
  std::vector<Span> spans_;
  std::vector<LayerSample> layer_samples_;
  std::vector<WeightRead> weight_reads_;
  std::vector<GradientSquares> squares_;
  MemoryAccount memory_;
};

}  // namespace frazil
