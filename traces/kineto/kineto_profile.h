#pragma once
// Traces of PyTorch's profiler -> a model profile: a chain of layers, one block each, with F, I and
// I + W as medians over the steps of all traces. How time finds its layer: kineto_layers.h,
// kineto_backward.h, kineto_costs.h. Rules, all reported:
// - Of a node that computes both gradients, I = floor(B/2) and W = B - I, and the profile carries
//   the flag; in a layer without any weight's gradient it is all I; in the first layer with one,
//   whose inputs need no gradient, the whole backward is W. W alone = W.
// - The update is shared among layers by parameter bytes, else by parameter tensors.
// - With recorded shapes: parameters are what AccumulateGrad was handed, a boundary what the
//   backward of the layer before it was handed, a stash the layer's input alone (a lower bound).
//   Without, boundaries and stashes are 0 and parameters 1 byte where there are any.

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "profiles/model_profile.h"
#include "traces/kineto/kineto_costs.h"

namespace frazil {

struct KinetoOptions {
  std::string model = "imported";
  std::string layer_prefix = "layer:";  // of the names of ranges that mark layers
  bool needs_ranges = false;            // such ranges must be there
  int micro_batch_size = 1;             // samples, as the traced run had them
  int micro_batches = 1;                // passes of a step
};

struct KinetoReport {
  LayerSource layers_by = LayerSource::kRanges;
  bool is_device_time = false;
  int traces = 0;
  std::int64_t events = 0;
  int steps = 0;  // counted
  int steps_dropped = 0;
  TimeShare operations;  // over the counted steps
  TimeShare device;
  Duration communication{0};                                           // of the device
  std::vector<std::pair<std::string, Duration>> largest_unattributed;  // at most three
  std::vector<std::string> notes;  // what the numbers rest on that was not measured
};

struct KinetoImport {
  ModelProfile profile;
  KinetoReport report;
};

// One trace per rank; a layer of several traces is taken from all. Throws InputError for bad files
// and for traces in which no layers are found or that do not belong together.
KinetoImport import_kineto(const std::vector<std::filesystem::path>& traces,
                           const KinetoOptions& options);

}  // namespace frazil
