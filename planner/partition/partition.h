#pragma once
// Exact min-max partition of a chain of layers into at most p consecutive stages: the largest stage
// load is as small as it can be. Load of stage s holding layers [i, j] =
//   sum of layer_load(i..j) x slowdown of device s + boundary_load(i-1) + boundary_load(j)
// or, where a stage sends beside its work, max(its work, back_load(i-1) + boundary_load(j)),
// subject to memory(s; i..j) <= limit. Dynamic program over (stages, end), exact for any
// non-negative loads; windows are cut by an upper bound, O(p L w) with w the widest stage that can
// matter. Ties: the fewest stages, then the lexicographically smallest cuts.

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "profiles/units.h"

namespace frazil {

struct ChainCosts {
  std::vector<Duration> layer;         // L entries, >= 0
  std::vector<Duration> boundary;      // L - 1 entries: transfer after layer i; >= 0
  std::vector<std::int64_t> time_ppm;  // of each stage's device; p entries
  // Bytes stage s of `stages` needs for layers [first, last]; must not fall when the range grows.
  // Empty: no memory limits.
  std::function<Bytes(int stage, int stages, int first, int last)> memory;
  std::vector<Bytes> memory_limit;  // p entries when `memory` is given
  // By stage one before it, or itself, with the same memory and limit; empty: not known.
  std::vector<int> memory_like = {};
  // L - 1 entries where a stage sends beside its work, of the gradient before layer i + 1;
  // `boundary` is then of the output alone. Empty: transfers block.
  std::vector<Duration> back = {};
};

struct ChainPartition {
  Duration load{0};           // of the most loaded stage
  std::vector<LayerId> cuts;  // first layer of stages 1, 2, ...
  friend bool operator==(const ChainPartition&, const ChainPartition&) = default;
};

// Exactly `stages` stages; none when no cut fits in memory or there are fewer layers than stages.
std::optional<ChainPartition> partition_into(const ChainCosts& costs, int stages);
// At most `stages` stages: never worse with more devices.
std::optional<ChainPartition> partition_at_most(const ChainCosts& costs, int stages);

}  // namespace frazil
