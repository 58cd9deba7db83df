#pragma once
// The profiler: times every layer inside real training steps, on every device at once (as a run
// keeps every core busy), sizes interleaved so that drift hits all alike; weighs what each layer
// saves; probes the link. Answers with the profile and the cluster that plan and simulate read.

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
  DeviceChoice processors = {};  // what they are
  int rounds = 12;               // each: `steps` steps of every size, in turn
  int steps = 8;          // half of them split the backward; half as many again with all frozen
  int warm_up_steps = 4;  // per size, not counted
  // Written into the cluster for each device; 0: what a GPU has over its streams, else 1 TiB.
  Bytes memory_limit;
  std::string command;  // for the provenance
};

struct MeasuredProfile {
  ModelProfile profile;
  Cluster cluster;
  std::optional<double> foreign_cores;  // kept busy by other programs meanwhile; in the provenance
};

// `progress(done, total)` after each stretch of steps.
MeasuredProfile measure_profile(const RunConfig& config, const Dataset& data,
                                const ProfileOptions& options,
                                const std::function<void(int, int)>& progress = {});

}  // namespace frazil
