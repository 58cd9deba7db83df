#pragma once
// Sums over one trace: what each layer took in each step, and how much of all time that explains.
// Time is that of the device where the trace has any device work (kernels, copies, fills; NCCL's
// kernels are communication and counted apart), else that of the host. On the host the forward of a
// layer marked by ranges takes their time without that of layers inside; without ranges, from each
// of its operations to the next one. A backward takes the time of its nodes.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "traces/kineto/kineto_backward.h"
#include "traces/kineto/kineto_join.h"
#include "traces/kineto/kineto_layers.h"

namespace frazil {

// One layer in one step, all micro-batches together; times in ns.
struct LayerStep {
  bool ran = false;
  std::int64_t forward = 0;
  std::int64_t input = 0;  // backward by part
  std::int64_t weight = 0;
  std::int64_t both = 0;
  std::int64_t update = 0;  // its share of the step's, by parameter bytes, else by tensors
  int weight_nodes = 0;
  int parameters = 0;                // tensors whose gradient was accumulated
  std::int64_t parameter_bytes = 0;  // of those with a known shape
  bool has_unknown_parameters = false;
  std::int64_t output_sequence = -1;  // of the node that was handed the gradient of its output
  std::int64_t output_bytes = -1;     // -1: unknown
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
  std::vector<std::int64_t> update;            // by step: inside `Optimizer.step#` ranges
  // Over all counted steps; attributed: to a layer or the update.
  TimeShare operations;
  TimeShare device;
  std::int64_t communication = 0;
  std::map<std::string, std::int64_t> unattributed;  // by operation, of the time that counts
};

TraceCosts sum_costs(const JoinedTrace& trace, const BackwardMatch& backward,
                     const TraceLayers& layers);

// Stops at the largest number: such a sum is refused later, as a cost out of range.
void add_saturating(std::int64_t& sum, std::int64_t term);

}  // namespace frazil
