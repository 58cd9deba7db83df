#pragma once
// Makes a model profile from traces of PyTorch's profiler: a chain of layers, one block each, with
// F, I (dgrad) and I + W (W: wgrad) as medians over the steps of all traces. How time finds its
// layer stands in kineto_layers.h, kineto_backward.h and kineto_costs.h. The report tells the rules
// that were applied:
// - A node that computes both gradients gives I = floor(B/2) and W = B - I, and the profile carries
//   the flag. In a layer none of whose weights gets a gradient, all of B is I. In the first layer
//   with such a weight, whose inputs need no gradient, the whole backward is W. W alone = W.
// - The update is shared among layers by parameter bytes, or by parameter tensors if some bytes are
//   unknown.
// - With recorded shapes, parameters are what AccumulateGrad was handed, and a boundary is what the
//   backward of the layer before it was handed. Without shapes, boundaries are 0, and a layer with
//   parameters has 1 byte of them.
// - A stash (saved activations) is measured where the trace was recorded with profile_memory=True
//   (kineto_memory.h), else the layer's input alone, a lower bound, or 0 without shapes.
// - A weight that two layers share is one tied parameter where shapes were recorded
//   (tied_weights.h).
// - Optimizer state is a number of tensors of the size of a parameter (optimizer_state.h).
// - Where each layer's range occurs n times in every step, a step holds n micro-batches.
// - The micro-batch size is given, else the rows that the first operation with parameters reads in
//   every step.
// What is a bound, a rule, a default or unknown is a doubt of the profile (profiles/doubt.h).

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "profiles/model_profile.h"
#include "traces/kineto/kineto_costs.h"

namespace frazil {

struct KinetoOptions {
  std::string model = "imported";
  std::string layer_prefix = "layer:";  // names of the ranges that mark layers begin so
  bool needs_ranges = false;            // refuse a trace without such ranges
  // Samples in a micro-batch of the traced run; none: as the recorded shapes tell.
  std::optional<int> micro_batch_size = std::nullopt;
  // A name of optimizer_state.h; none: that of the trace's ranges "Optimizer.step#AdamW.step".
  std::optional<std::string> optimizer = std::nullopt;
  // Passes in a step of the traced run; none: as often as each layer's range occurs in a step,
  // or 1.
  std::optional<int> micro_batches = std::nullopt;
};

struct KinetoReport {
  LayerSource layers_by = LayerSource::kRanges;
  bool is_device_time = false;
  int micro_batch_size = 1;
  int micro_batches = 1;  // of a step
  int traces = 0;
  std::int64_t events = 0;
  int steps = 0;  // steps that count
  int steps_dropped = 0;
  // How far the middle half of the counted steps lies apart, over their median; a step is what its
  // layers and its update take. None for fewer than two steps.
  std::optional<double> step_spread = std::nullopt;
  TimeShare operations;  // over the counted steps
  TimeShare device;
  Duration communication{0};                                           // device time
  std::vector<std::pair<std::string, Duration>> largest_unattributed;  // at most three
  std::vector<std::string> notes;  // assumptions behind the numbers
};

struct KinetoImport {
  ModelProfile profile;
  KinetoReport report;
};

// Imports one trace per rank; a layer that several traces hold takes its steps from all these
// traces. Throws InputError for bad files, for traces in which no layers are found, and for traces
// that do not belong together; "no --micro-batch-size" where nobody tells it; for another number of
// micro-batches than the ranges show.
KinetoImport import_kineto(const std::vector<std::filesystem::path>& traces,
                           const KinetoOptions& options);

}  // namespace frazil
