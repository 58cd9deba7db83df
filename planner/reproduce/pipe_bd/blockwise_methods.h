#pragma once
// Simulates the methods that Pipe-BD compares on four devices of one host, each with its loaders:
//   DP       students one after another, each on all devices; every step loads a batch anew
//   LS       students dealt to devices, each trained alone at the full batch; every device loads
//            full batches for itself, beside the others
//   TR, TR+DPU, AHD   the pipeline of a hybrid plan; the devices of its first stage load each batch
//            once; TR has a barrier

#include <optional>
#include <vector>

#include "planner/reproduce/pipe_bd/loaded_steps.h"

namespace frazil {

inline constexpr int kPipeBdDevices = 4;

struct BlockwiseTask {
  BlockwiseTimes times;
  Loader loader;
};

// Time of a step; where students are trained one after another, the sum over the students.
struct MethodTime {
  Duration plain{0};
  std::vector<Duration> drawn;  // by run of the draws
};

// The blocks of each device, in the order in which it trains them.
using Dealing = std::vector<std::vector<int>>;
// Returns the blocks that Pipe-BD's code gives its four ranks. Requires: six blocks.
Dealing deal_as_published();
// Deals blocks to devices: the longest training first, each to the device with the least work
// (Graham 1969, LPT). Loading is left out.
Dealing deal_by_time(const BlockwiseTimes& times);

MethodTime time_data_parallel(const BlockwiseTask& task, const StudentDraws& draws);
// The device that is done last decides.
MethodTime time_layerwise(const BlockwiseTask& task, const Dealing& dealing,
                          const StudentDraws& draws);
MethodTime time_relayed(const BlockwiseTask& task, const HybridPlan& plan, bool barrier,
                        const StudentDraws& draws);

// Returns Pipe-BD's costs of the task, with the memory of devices with this limit.
HybridCosts find_hybrid_costs(const BlockwiseTimes& times, Bytes memory_limit);
// Returns the first of the best plans with one device per stage, which TR and TR+DPU take.
// Requires: there is one.
HybridPlan find_pipeline(const std::vector<HybridPlan>& ranked);

// The hybrid plan that takes least time by simulation, its loaders included.
struct OwnHybrid {
  HybridPlan plan;
  Duration step{0};
};
// Returns the fastest of all hybrid plans that fit. Requires: some plan fits.
OwnHybrid find_own_hybrid(const BlockwiseTask& task, Bytes memory_limit);

}  // namespace frazil
