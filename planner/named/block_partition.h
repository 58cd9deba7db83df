#pragma once
// torchgpipe's balance by time cuts a chain into k consecutive blocks that are nearly equal, after
// Barany and Grinberg, "Block partitions of sequences" (arXiv 1308.2452). It starts with floor(n/k)
// elements per block and the rest in the last block. Every element counts with its cost less the
// smallest cost. While the largest block exceeds the smallest by more than the largest element, the
// smallest block takes one element from its neighbour on the side of the largest. This bounds the
// spread, not the largest block, and ignores boundaries and memory, so the largest block may lie
// above the min-max optimum of planner/partition/partition.h.
//
// Known from the released code: of equal blocks the last counts as largest and the first as
// smallest. Chosen here: exact integers instead of normalised floating point; an empty neighbour is
// itself taken as the smallest block, as the paper asks.

#include <span>
#include <vector>

#include "profiles/units.h"

namespace frazil {

// Returns the first element of blocks 1, 2, ..., k - 1: ascending, and equal where a block is
// empty. Requires: 1 <= blocks <= costs.size(); costs >= 0.
std::vector<int> partition_in_blocks(std::span<const Duration> costs, int blocks);

}  // namespace frazil
