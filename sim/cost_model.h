#pragma once
// The price of work: what a profile and a cluster say about each kind.
//   Compute     (sum of its layers' parts at the micro-batch size) x time_ppm / 10^6, rounded down,
//               + the device's action_overhead
//   ComputePair the sum of both
//   Transfer    size / bandwidth of the link       Hop   latency of the link
//   Collective  collective_cost                    Fixed as it says

#include <vector>

#include "profiles/cluster.h"
#include "profiles/model_profile.h"
#include "sim/task_graph.h"
#include "sim/work.h"

namespace frazil {

struct Prices {
  std::vector<Duration> of_work;  // by WorkId
  bool extrapolated = false;      // some layer cost lies outside its measured sizes
};

// Sets *extrapolated where a layer cost lies outside its measured sizes, else leaves it alone.
// Requires: every layer and device named in `work` exists.
Duration price(const Work& work, const ModelProfile& profile, const Cluster& cluster,
               bool* extrapolated = nullptr);
Prices price_all(const TaskGraph& graph, const ModelProfile& profile, const Cluster& cluster);

}  // namespace frazil
