#pragma once
// At which of the two depths that a cache knows samples are found.

#include <cstdint>
#include <optional>

namespace frazil {

// Returns the depth that covers all of so many samples: the one in force, else the one before; null
// if neither does. Counts the samples as found there, or as missed. `covers` is asked of a depth;
// `counts` are FeatureCounts.
template <class Depth, class Counts, class Covers>
const Depth* choose_depth(const Depth& now, const std::optional<Depth>& before,
                          std::int64_t samples, Counts& counts, const Covers& covers) {
  if (covers(now)) {
    counts.found += samples;
    return &now;
  }
  if (before && covers(*before)) {
    counts.found_before += samples;
    return &*before;
  }
  counts.missed += samples;
  return nullptr;
}

}  // namespace frazil
