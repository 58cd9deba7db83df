#pragma once
// clang-format off
// Exact min-max partition of a chain of layers into p consecutive stages: the largest stage load is
// as small as it can be. The load of stage s that holds layers [i, j] is
//   sum of layer_load(i..j) x slowdown of device s + boundary_load(i-1) + boundary_load(j)
// or, if a stage sends beside its work,
//   max(sum of layer_load(i..j) x slowdown of device s, back_load(i-1) + boundary_load(j))
// subject to memory(s; i..j) <= limit. It is a dynamic program over (stages, end), exact for any
// non-negative loads; windows are cut by an upper bound, which gives O(p L w) with w the widest
// stage that can matter. Ties go to the lexicographically smallest cuts.
// clang-format on

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
  // Returns the bytes that stage `stage` of `stages` needs for layers [first, last]; must not fall
  // when the range grows. Empty: no memory limits.
  std::function<Bytes(int stage, int stages, int first, int last)> memory;
  std::vector<Bytes> memory_limit;  // p entries when `memory` is given
  // Each entry names an earlier stage with the same memory and limit, or the stage itself; empty:
  // not known.
  std::vector<int> memory_like = {};
  // L - 1 entries if a stage sends beside its work: transfer of the gradient before layer i + 1;
  // `boundary` is then the transfer of the output alone. Empty: transfers block.
  std::vector<Duration> back = {};
};

struct ChainPartition {
  Duration load{0};           // of the most loaded stage
  std::vector<LayerId> cuts;  // first layer of stages 1, 2, ...
  friend bool operator==(const ChainPartition&, const ChainPartition&) = default;
};

// Returns the best partition into exactly `stages` stages; none if no cut fits in memory or there
// are fewer layers than stages.
std::optional<ChainPartition> partition_into(const ChainCosts& costs, int stages);

}  // namespace frazil
