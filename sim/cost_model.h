#pragma once
// clang-format off
// Prices work: the time that a profile and a cluster give to each kind.
//   Compute      (sum of its layers' parts at the micro-batch size) x time_ppm / 10^6, rounded
//                down, + the device's action_overhead unless goes_on
//   ComputePair  the sum of both
//   Transfer     size / bandwidth of the link
//   Hop          latency of the link
//   Collective   collective_cost
//   Fixed        its duration
// clang-format on

#include <vector>

#include "profiles/setting.h"
#include "sim/task_graph.h"
#include "sim/work.h"

namespace frazil {

struct Prices {
  std::vector<Duration> of_work;  // by WorkId
  bool extrapolated = false;      // some layer cost lies outside its measured sizes
};

// Returns the time of `work`. Sets *extrapolated if a layer cost lies outside the measured sizes,
// else leaves *extrapolated alone. Throws InfeasibleError for a Compute of more than 2^63 ns, and
// InputError as cost_at() does. Requires: every layer and device named in `work` exists.
Duration price(const Work& work, Setting setting, bool* extrapolated = nullptr);
// Prices all works of a graph; throws as price() does.
Prices price_all(const TaskGraph& graph, Setting setting);

}  // namespace frazil
