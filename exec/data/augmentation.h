#pragma once
// Random changes of training images. What a sample becomes follows from the run's seed, the variant
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
  int variants = 0;  // 0: a new one in every epoch
  bool is_random() const { return kind != Kind::kNone; }
  friend bool operator==(const AugmentationConfig&, const AugmentationConfig&) = default;
};

// Epoch e draws variant e mod K; of an augmentation that draws anew in every epoch variant e; 0
// where nothing is random.
std::int64_t variant_of(const AugmentationConfig& config, int epoch);

// How many variants of a sample there are; none: as many as epochs.
std::optional<int> count_variants(const AugmentationConfig& config);

// Each row is the sample of that number, one after another over the micro-batches.
void augment(std::vector<Samples>& micro_batches, std::span<const std::int64_t> samples,
             const AugmentationConfig& config, std::uint64_t seed, std::int64_t variant);

}  // namespace frazil
