#pragma once
// DynMo's balancers (Wahib, Soyturk, Unat, arXiv 2505.14864): as the costs of layers change, the
// pipeline is cut anew and then packed onto fewer workers.
//
// Known from the paper's abstract and its released code (which only prunes BERT):
// - A partition balancer uses prefix sums and a binary search on the bottleneck, with a probe that
//   fills stage after stage.
// - A diffusion balancer runs at most 5 rounds. Each stage above the mean load offers a layer, and
//   the offer holds if the variance of the loads falls.
// - Both balancers ask whether the receiver has the memory.
// - A packing goes over pairs src < dst and merges two stages whose memory fits together.
// Chosen here, because the released code sends the lightest layer to the lightest stage and appends
// it there, which breaks the order of layers:
// - A stage offers the layer at its end to the lighter of its neighbours that has the memory.
// - The packing merges neighbours.
// - The binary search is over integers and ends at the optimum.
// - "Without sacrificing throughput" is read as: no merged stage exceeds the bottleneck.

#include <cstdint>
#include <optional>
#include <vector>

#include "profiles/units.h"

namespace frazil {

struct ChainLoads {
  std::vector<Duration> time;  // by layer, >= 0
  std::vector<Bytes> memory;   // by layer, >= 0
  Bytes memory_limit;          // of each worker
  // Time of each worker per time of the chain, in millionths; empty: workers are alike. Diffusion
  // alone takes workers that differ; for an exact cut over them see
  // planner/partition/partition.h.
  std::vector<std::int64_t> time_ppm = {};
};

// Cuts are the first layers of stages 1, 2, ...: ascending, within the chain.

// Returns cuts into at most `workers` stages whose largest load is minimal; none when no such cuts
// fit the memory.
std::optional<std::vector<int>> balance_by_partition(const ChainLoads& chain, int workers);

// Improves the given cuts for at most `rounds` rounds of offers; 0: until no offer holds. Stages
// that exceed the memory at the start may still do so at the end.
std::vector<int> balance_by_diffusion(const ChainLoads& chain, std::vector<int> cuts,
                                      int rounds = 5);

// Merges neighbouring stages from the front where their memory fits together. Given `workers`, it
// merges whatever the load until that many stages are left, and returns none when memory forbids
// this. Without `workers` it merges only stages that together do not exceed the bottleneck.
std::optional<std::vector<int>> pack_stages(const ChainLoads& chain, std::vector<int> cuts,
                                            std::optional<int> workers = std::nullopt);

}  // namespace frazil
