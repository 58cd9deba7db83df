#pragma once
// DynMo's balancers (Wahib, Soyturk, Unat, arXiv 2505.14864): as layers change cost, the pipeline
// is cut anew, and then packed onto fewer workers.
//
// Known, from the paper's abstract and its released code (pruning of BERT alone): a partition
// balancer by prefix sums and a binary search on the bottleneck, a probe filling stage after stage;
// a diffusion balancer of at most 5 rounds, in which each stage above the mean load offers a layer
// and the offer holds if the variance of loads falls; both ask whether the receiver has the memory;
// and a packing that goes over pairs src < dst and merges two whose memory fits together.
// Chosen, for the released code sends the lightest layer to the lightest stage and appends it
// there, which breaks the order of layers: an offer is a layer at a stage's end, to the lighter of
// its neighbours that has the memory; packing merges neighbours; the search is over integers and
// ends at the optimum. "Without sacrificing throughput" is read as: no merged stage above the
// bottleneck.

#include <optional>
#include <vector>

#include "profiles/units.h"

namespace frazil {

struct ChainLoads {
  std::vector<Duration> time;  // by layer, >= 0
  std::vector<Bytes> memory;   // likewise
  Bytes memory_limit;          // of each worker
};

// Below, cuts are the first layers of stages 1, 2, ...: ascending, within the chain.

// The largest load is as small as it can be with at most so many stages; none when memory forbids.
std::optional<std::vector<int>> balance_by_partition(const ChainLoads& chain, int workers);

// From given cuts. 0 rounds: until no offer holds.
std::vector<int> balance_by_diffusion(const ChainLoads& chain, std::vector<int> cuts,
                                      int rounds = 5);

// Merges neighbours from the front. With a number of workers, whatever the load, until so many are
// left: none when memory forbids. Without, as far as the bottleneck stays.
std::optional<std::vector<int>> pack_stages(const ChainLoads& chain, std::vector<int> cuts,
                                            std::optional<int> workers = std::nullopt);

}  // namespace frazil
