#pragma once
// Changes training images at random. What a sample becomes follows from the run's seed, the variant
// that an epoch draws, and the sample's number alone, so that it is the same under every plan, and
// a cache can tell what it holds.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "exec/tensors/sample_source.h"
#include "exec/tensors/samples.h"

namespace frazil {

struct AugmentationConfig {
  // kShift moves an image and repeats its edge where nothing comes in. kCrop cuts an image of the
  // same size out of one with so many black pixels around it, and turns every second one around
  // (RandomCrop and RandomHorizontalFlip of torchvision).
  enum class Kind { kNone, kShift, kCrop };
  Kind kind = Kind::kNone;
  int pixels = 1;     // an image moves by up to so many, down or up, left or right
  bool flip = false;  // of kCrop: whether left and right are exchanged at random
  int variants = 0;   // 0: a new variant in every epoch
  bool is_random() const { return kind != Kind::kNone; }
  bool crops() const { return kind == Kind::kCrop; }
  friend bool operator==(const AugmentationConfig&, const AugmentationConfig&) = default;
};

// Returns the variant that an epoch draws: with K variants e mod K in epoch e, with 0 variants e,
// and 0 if nothing is random.
std::int64_t variant_of(const AugmentationConfig& config, int epoch);

// Returns how many variants of a sample there are; none: as many as epochs.
std::optional<int> count_variants(const AugmentationConfig& config);

// Changes the images in place. Row by row, one micro-batch after another, `samples` are the numbers
// of the samples. `normalization` is that of the images; it tells what a black pixel is.
void augment(std::vector<Samples>& micro_batches, std::span<const std::int64_t> samples,
             const AugmentationConfig& config, std::uint64_t seed, std::int64_t variant,
             const Normalization& normalization = {});

}  // namespace frazil
