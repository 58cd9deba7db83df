#pragma once
// What one device measured: spans of actions, and, when asked for, the time of each layer's parts
// and the memory of a step.
// One recorder per device, written by its thread alone.

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
  kBackwardInput,        // alone
  kBackwardWeight,       // after its I
  kBackwardWeightAlone,  // without the input gradient
  kUpdate,
};

struct LayerSample {
  LayerId layer;
  LayerPhase phase = LayerPhase::kForward;
  int samples = 0;  // of the micro-batch; 0 for an update
  Duration duration{0};
};

// Over a layer's parameters, in order, in double.
struct GradientSquares {
  LayerId layer;
  double value = 0;
};

// What to measure beside spans. `slow_layer` is the checker's self-test: that layer spins for
// `slow_percent` of its own time after each phase.
struct Measurement {
  bool layers = false;
  // Every second step, take the input and the weight gradient in two passes and time each.
  bool split_backward = false;
  bool memory = false;
  // Of the gradients as they come out of the reduction, before clipping: the sum of squares of each
  // layer's, and the sum over the steps in LayerState::gradient_sums.
  bool gradient_squares = false;
  bool gradient_sums = false;
  int slow_layer = -1;
  int slow_percent = 0;
};

class Recorder {
 public:
  // `ended` counts the actions of all devices, for who watches from another thread.
  Recorder(DeviceId device, SteadyTime origin, const ComputeDevice& compute = {},
           std::atomic<std::int64_t>* ended = nullptr)
      : device_(device), origin_(origin), compute_(compute), ended_(ended) {}

  const ComputeDevice& compute() const { return compute_; }
  SteadyTime now() const { return std::chrono::steady_clock::now(); }
  // When the device has done what it was given: now, of a core. Throws as ComputeDevice::finish().
  SteadyTime end_work() const {
    compute_.finish();
    return now();
  }
  // The action ends when its work does. Throws as end_work().
  void add(const Action& action, Step step, Lane lane, SteadyTime start);
  // Work of the host inside another action, which is done: on the host's lane.
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
