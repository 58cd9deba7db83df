#pragma once
// Changes training images at random. What a sample becomes follows from the run's seed, the variant
// that an epoch draws, and the sample's number alone, so that it is the same under every plan, and
// a cache can tell what it holds.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "exec/tensors/samples.h"

namespace frazil {

struct AugmentationConfig {
  enum class Kind { kNone, kShift };
  Kind kind = Kind::kNone;
  int pixels = 1;
  int variants = 0;  // 0: a new variant in every epoch
  bool is_random() const { return kind != Kind::kNone; }
  friend bool operator==(const AugmentationConfig&, const AugmentationConfig&) = default;
};

// Returns the variant that an epoch draws: with K variants e mod K in epoch e, with 0 variants e,
// and 0 if nothing is random.
std::int64_t variant_of(const AugmentationConfig& config, int epoch);

// Returns how many variants of a sample there are; none: as many as epochs.
std::optional<int> count_variants(const AugmentationConfig& config);

// Changes the images in place. Row by row, one micro-batch after another, `samples` are the numbers
// of the samples.
void augment(std::vector<Samples>& micro_batches, std::span<const std::int64_t> samples,
             const AugmentationConfig& config, std::uint64_t seed, std::int64_t variant);

}  // namespace frazil
