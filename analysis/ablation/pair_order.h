#pragma once
// Orders the pairs of arm and seed of an ablation. Seeds follow one another, and under each seed
// the arms stand in an order drawn by it, so that a machine that gets slower or faster in the
// course of hours does so for all arms alike.

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "analysis/ablation/arm.h"

namespace frazil {

struct ArmSeed {
  Arm arm = Arm::kUnfrozen;
  std::int64_t seed = 1;
  friend bool operator==(const ArmSeed&, const ArmSeed&) = default;
};

// Returns the arms whose results under the same seed an arm is made from.
std::span<const Arm> needs_of(Arm arm);

// Returns all pairs in the order in which they run; each comes after those that it needs. Requires:
// `arms` has what its arms need, and no arm twice.
std::vector<ArmSeed> order_pairs(const std::vector<Arm>& arms,
                                 const std::vector<std::int64_t>& seeds);

// Begin a stream of numbers by (seed, key), and return its next index below `count`.
std::uint64_t start_stream(std::int64_t seed, std::uint64_t key);
std::size_t draw_below(std::size_t count, std::uint64_t& state);

// Shuffles by (seed, key), on every machine in the same way (Fisher-Yates).
template <class T>
void shuffle_by(std::vector<T>& values, std::int64_t seed, std::uint64_t key) {
  std::uint64_t state = start_stream(seed, key);
  for (std::size_t left = values.size(); left > 1; --left) {
    std::swap(values[left - 1], values[draw_below(left, state)]);
  }
}

}  // namespace frazil
