#pragma once
// Sums the time of one trace: what each layer took in each step, and how much of all time that
// explains. If the trace has device work other than communication (kernels, copies, fills), device
// time counts, with NCCL's kernels summed apart as communication; else host time counts. On the
// host, the forward of a layer marked by ranges takes the time of its ranges less the ranges inside
// them; the forward of a layer found by operations takes the time from each of its operations to
// the next operation. A backward takes the time of its nodes.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "traces/kineto/kineto_backward.h"
#include "traces/kineto/kineto_join.h"
#include "traces/kineto/kineto_layers.h"

namespace frazil {

// Facts of one layer in one step, all micro-batches together; times in ns.
struct LayerStep {
  bool ran = false;
  std::int64_t forward = 0;
  std::int64_t input = 0;  // the backward by part: I, W, both
  std::int64_t weight = 0;
  std::int64_t both = 0;
  // Its share of the step's update, by parameter bytes, or by tensors if some shape is unknown.
  std::int64_t update = 0;
  int weight_nodes = 0;
  int parameters = 0;                // parameter tensors whose gradient was accumulated
  std::int64_t parameter_bytes = 0;  // bytes of the parameters with a known shape
  bool has_unknown_parameters = false;
  std::int64_t largest_parameter = 0;  // bytes of the largest of them
  // Bytes of transposed gradients of weights that no AccumulateGrad right behind took
  // (tied_weights.h).
  std::int64_t unaccumulated = 0;
  // The node that was handed the gradient of the layer's output; -1: none.
  std::int64_t output_sequence = -1;
  std::int64_t output_bytes = -1;  // -1: unknown
  std::int64_t stash = -1;         // saved activations, measured; -1: unknown
};

struct TimeShare {
  std::int64_t total = 0;  // ns
  std::int64_t attributed = 0;

  double share() const {
    return total == 0 ? 1 : static_cast<double>(attributed) / static_cast<double>(total);
  }
};

struct TraceCosts {
  bool is_device_time = false;
  std::vector<std::vector<LayerStep>> layers;  // [layer][step]
  std::vector<std::int64_t> update;            // by step: time inside `Optimizer.step#` ranges
  // Times over all counted steps; a time is attributed if it belongs to a layer or the update.
  TimeShare operations;
  TimeShare device;
  std::int64_t communication = 0;
  // The time that counts (host or device) and is not attributed, by operation.
  std::map<std::string, std::int64_t> unattributed;
};

TraceCosts sum_costs(const JoinedTrace& trace, const BackwardMatch& backward,
                     const TraceLayers& layers);

// Adds `term` to `sum`, which stops at the largest number; such a sum is refused later, as a cost
// out of range.
void add_saturating(std::int64_t& sum, std::int64_t term);

}  // namespace frazil
