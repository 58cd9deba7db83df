#pragma once
// LayerTimes gathers layer samples into mean times by layer, phase and micro-batch size. They are
// trimmed means (analysis/ratio_interval.h), because the means of parts add up to the mean of the
// whole.

#include <map>
#include <tuple>
#include <vector>

#include "exec/measuring/recorder.h"

namespace frazil {

class LayerTimes {
 public:
  // `keep`: the share of the samples, counted from the lowest, that a mean is taken over.
  explicit LayerTimes(double keep = 0.9) : keep_(keep) {}

  void add(const std::vector<LayerSample>& samples);
  bool has(LayerId layer, LayerPhase phase, int samples) const;
  // Returns the sizes of micro-batches, or of slices of them, that the layer's forward was measured
  // at, ascending.
  std::vector<int> sizes(LayerId layer) const;
  // Returns the trimmed mean, 0 if there is no sample.
  Duration mean(LayerId layer, LayerPhase phase, int samples) const;
  // Returns the sum of the mean forward, loss and backward times of a layer at a micro-batch size.
  Duration forward_and_backward(LayerId layer, int samples) const;
  // Returns what the layer takes at the end of a step: its update, and folding as many
  // micro-batches into its running statistics as the measured steps had.
  Duration update(LayerId layer) const;

 private:
  double keep_;
  std::map<std::tuple<LayerId, LayerPhase, int>, std::vector<double>> samples_;
};

// The time that actions take beside their layers, and steps beside their actions.
struct Overheads {
  Duration per_action{0};
  Duration per_step{0};
};

// OverheadMeter derives both overheads from recorded steps: (F and B spans - their layers' samples)
// / actions, and step time - makespan + the wait between a last U and what its device did before,
// in which owners share their statistics: the shortest one of a stage's devices, for those that
// were ready earlier also wait for the others, and the longest one over the stages. Each is the
// trimmed mean over the steps, never below 0.
class OverheadMeter {
 public:
  explicit OverheadMeter(double keep = 0.9) : keep_(keep) {}

  void add_step(Duration step_time, const std::vector<Span>& spans,
                const std::vector<LayerSample>& samples);
  Overheads overheads() const;

 private:
  double keep_;
  std::vector<double> per_action_;
  std::vector<double> per_step_;
};

}  // namespace frazil
