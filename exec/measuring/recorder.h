#pragma once
// A recorder keeps what one device measures: spans of actions and, when asked for, the times of
// each layer's phases and the memory of a step. Every device has a recorder of its own, to which
// its thread alone writes.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <vector>

#include "exec/devices/compute_device.h"
#include "exec/devices/steady_time.h"
#include "exec/measuring/memory_account.h"
#include "exec/state/weight_versions.h"
#include "profiles/units.h"
#include "traces/timeline.h"

namespace frazil {

enum class LayerPhase : std::uint8_t {
  kForward,
  kLoss,                 // of the layer with the loss, after its forward
  kBackward,             // input and weight gradients in one pass, as far as the layer needs them
  kBackwardInput,        // I (dgrad) alone
  kBackwardWeight,       // W (wgrad) after the layer's I, in a schedule that splits the backward
  kBackwardWeightAlone,  // W in a backward that is split for measuring
  kUpdate,
};

struct LayerSample {
  LayerId layer;
  LayerPhase phase = LayerPhase::kForward;
  int samples = 0;  // in the micro-batch; 0 for an update
  Duration duration{0};
};

// The sum of squares of a layer's gradients, added in double over its parameters in order.
struct GradientSquares {
  LayerId layer;
  double value = 0;
};

// Tells what to measure beside spans. `slow_layer` is for the self-test of frazil verify: that
// layer spins for `slow_percent` of its own time after each phase.
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
};

class Recorder {
 public:
  // `ended`, where given, counts the finished actions of all devices, for a thread that watches the
  // step.
  Recorder(DeviceId device, SteadyTime origin, const ComputeDevice& compute = {},
           std::atomic<std::int64_t>* ended = nullptr)
      : device_(device), origin_(origin), compute_(compute), ended_(ended) {}

  const ComputeDevice& compute() const { return compute_; }
  SteadyTime now() const { return std::chrono::steady_clock::now(); }
  // Waits until the device has done what it was given and returns the time then. A CPU core never
  // has to wait. Throws as ComputeDevice::finish().
  SteadyTime end_work() const {
    compute_.finish();
    return now();
  }
  // Records the span of an action, which ends when its work does. Throws as end_work().
  void add(const Action& action, Step step, Lane lane, SteadyTime start);
  // Records the span of host work inside another action, on the host's lane. The work is done.
  void add_inside(const Action& action, Step step, SteadyTime start);
  void add_layer(const LayerSample& sample) { layer_samples_.push_back(sample); }

  MemoryAccount& memory() { return memory_; }

  void add_gradient_squares(const GradientSquares& squares) { squares_.push_back(squares); }
  void add_weight_read(const WeightRead& read) { weight_reads_.push_back(read); }

  std::vector<Span> take_spans();
  std::vector<WeightRead> take_weight_reads();
  std::vector<LayerSample> take_layer_samples();
  std::vector<GradientSquares> take_gradient_squares();

 private:
  Span make_span(const Action& action, Step step, Lane lane, SteadyTime start,
                 SteadyTime end) const;

  DeviceId device_;
  SteadyTime origin_;
  ComputeDevice compute_;
  std::atomic<std::int64_t>* ended_;
  std::vector<Span> spans_;
  std::vector<LayerSample> layer_samples_;
  std::vector<WeightRead> weight_reads_;
  std::vector<GradientSquares> squares_;
  MemoryAccount memory_;
};

}  // namespace frazil
