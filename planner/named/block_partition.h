#pragma once
// torchgpipe's balance by time: a chain cut into k consecutive blocks that are nearly equal, after
// Barany and Grinberg, "Block partitions of sequences" (arXiv 1308.2452). Start: floor(n/k)
// elements per block, the rest in the last; every element counts by what it has more than the
// smallest. While a largest block exceeds the smallest by more than the largest element, the
// smallest takes one element from its neighbour towards the largest. It bounds the spread, not the
// largest block, and knows neither boundaries nor memory, so it may lie above the min-max optimum
// of planner/partition/partition.h.
//
// Known: of equal blocks the last counts as largest and the first as smallest. Chosen: exact
// integers instead of normalised floating point; where that neighbour is empty, it is itself taken
// as the smallest, as the paper asks.

#include <span>
#include <vector>

#include "profiles/units.h"

namespace frazil {

// First element of blocks 1, 2, ..., k - 1; ascending, and equal where a block is empty.
// Requires: 1 <= blocks <= costs.size(); costs >= 0.
std::vector<int> partition_in_blocks(std::span<const Duration> costs, int blocks);

}  // namespace frazil
