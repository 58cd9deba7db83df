#pragma once
// The profiler times every layer inside real training steps, on every device at once, because a run
// keeps every core busy too. Micro-batch sizes are interleaved, so that drift hits all of them
// alike. It also measures the saved activations of each layer, probes the latency of the link, and
// takes its bandwidth from the reductions of those steps. Its answer is the profile and the cluster
// that frazil plan and frazil simulate read.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "exec/config/run_config.h"
#include "exec/data/dataset.h"
#include "exec/devices/compute_device.h"
#include "profiles/cluster.h"
#include "profiles/model_profile.h"

namespace frazil {

struct ProfileOptions {
  std::vector<int> micro_batch_sizes = {8};
  int devices = 2;
  DeviceChoice processors = {};  // cores or GPUs
  int rounds = 12;               // each: `steps` steps of every size, in turn
  // Half of the steps split the backward. Half as many steps follow with all blocks but the head
  // frozen.
  int steps = 8;
  int warm_up_steps = 4;  // per size, not counted
  // The capacity that the cluster names for each device. 0: what a GPU has beside its streams, else
  // 1 TiB.
  Bytes memory_limit;
  // For the provenance; the second says how the model file was checked, if there is one.
  std::string command;
  std::string model_check = {};
};

struct MeasuredProfile {
  ModelProfile profile;
  Cluster cluster;
  // The cores that other programs kept busy meanwhile; the provenance tells them too.
  std::optional<double> foreign_cores;
};

// Measures the configured model on the training samples of `data`. Calls `progress(done, total)`
// after each round.
MeasuredProfile measure_profile(const RunConfig& config, const Dataset& data,
                                const ProfileOptions& options,
                                const std::function<void(int, int)>& progress = {});

}  // namespace frazil
