#pragma once
// Random draws depend on a key instead of on their order: the same key draws the same numbers in
// every plan, on every device, and again when a forward is recomputed.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

#include "profiles/units.h"

namespace at {
struct Generator;
}

namespace frazil {

// Samples [first, first + count) of the `all` samples of a micro-batch.
struct SampleRows {
  std::int64_t first = 0;
  std::int64_t count = 0;
  std::int64_t all = 0;
};

// The key tells where a random draw belongs.
struct RandomKey {
  std::uint64_t seed = 0;
  Step step = 0;
  MicroBatchId micro_batch;
  // Set for a slice, which draws what the whole micro-batch would.
  std::optional<SampleRows> rows = std::nullopt;
};

// A sequence of whole numbers that follows from four other numbers alone (SplitMix64: Steele, Lea,
// Flood 2014).
class KeyedDraws {
 public:
  KeyedDraws(std::uint64_t a, std::uint64_t b, std::uint64_t c, std::uint64_t d);
  std::uint64_t next();
  // Returns a number uniform in [0, bound), none favoured. Requires: bound > 0.
  std::uint64_t below(std::uint64_t bound);

 private:
  std::uint64_t state_;
};

// Returns a generator whose state depends on the four numbers alone.
at::Generator make_generator(std::uint64_t a, std::uint64_t b, std::uint64_t c, std::uint64_t d);

// One of the draws of a layer.
struct DrawPlace {
  LayerId layer;
  std::uint64_t draw = 0;  // below 2^32
};

// Returns the generator of a draw. A slice has that of the whole micro-batch.
at::Generator make_generator(const DrawPlace& place, const RandomKey& key);

// Returns a mask of zeros, with probability `rate`, and 1 / (1 - rate). That of a slice is drawn
// for the whole micro-batch. Requires: rate < 1; with key.rows, dimension 0 counts the slice's
// samples.
at::Tensor draw_keyed_mask(at::IntArrayRef sizes, const at::TensorOptions& options, double rate,
                           const DrawPlace& place, const RandomKey& key);

// Applies dropout to x if `training`. A layer may do so once, because draws are keyed by (seed,
// step, layer, micro-batch), as draw 0. The mask of a slice is drawn for the whole micro-batch;
// throws InfeasibleError if dimension 0 of x does not count the slice's samples.
at::Tensor drop(const at::Tensor& x, double rate, LayerId layer, const RandomKey& key,
                bool training);

}  // namespace frazil
