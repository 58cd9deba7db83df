#pragma once
// Randomness by key instead of by order: the same key draws the same numbers in every plan, on
// every device, and again when a forward is recomputed.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

#include "profiles/units.h"

namespace at {
struct Generator;
}

namespace frazil {

// Samples [first, first + count) of all that a micro-batch has.
struct SampleRows {
  std::int64_t first = 0;
  std::int64_t count = 0;
  std::int64_t all = 0;
};

// Where a random draw belongs.
struct RandomKey {
  std::uint64_t seed = 0;
  Step step = 0;
  MicroBatchId micro_batch;
  std::optional<SampleRows> rows = std::nullopt;  // of a slice: it draws what the whole would
};

// Whole numbers that follow from four others alone (SplitMix64: Steele, Lea, Flood 2014).
class KeyedDraws {
 public:
  KeyedDraws(std::uint64_t a, std::uint64_t b, std::uint64_t c, std::uint64_t d);
  std::uint64_t next();
  // Uniform in [0, bound), none favoured. Requires: bound > 0.
  std::uint64_t below(std::uint64_t bound);

 private:
  std::uint64_t state_;
};

// A generator whose state depends on the four numbers alone.
at::Generator make_generator(std::uint64_t a, std::uint64_t b, std::uint64_t c, std::uint64_t d);

// Dropout of a layer's branch; one per layer, as its draws are keyed by (seed, step, layer,
// micro-batch). For a slice the whole micro-batch is drawn; throws InfeasibleError where dimension
// 0 of x is not its samples.
at::Tensor drop(const at::Tensor& x, double rate, LayerId layer, const RandomKey& key,
                bool training);

}  // namespace frazil
