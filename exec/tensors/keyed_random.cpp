#include "exec/tensors/keyed_random.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include <limits>
#include <vector>

#include "exec/tensors/sample_rows.h"

namespace frazil {
namespace {

constexpr std::uint64_t kStride = 0x9e3779b97f4a7c15ULL;

// The mixing of splitmix64 (Steele, Lea, Flood 2014) spreads neighbouring keys over unrelated
// seeds.
std::uint64_t mix(std::uint64_t x) {
  x += kStride;
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31U);
}

std::uint64_t mix_key(std::uint64_t a, std::uint64_t b, std::uint64_t c, std::uint64_t d) {
  return mix(mix(mix(mix(a) + b) + c) + d);
}

// Draws a mask in the order of elements, whatever the strides of the tensor that it is for. It is
// drawn on the host, so that a GPU drops what a core would, and copied to a GPU in the order of its
// work.
at::Tensor draw_mask(at::IntArrayRef sizes, const at::TensorOptions& options, double rate,
                     at::Generator& generator) {
  const bool is_for_gpu = options.device().is_cuda();
  at::TensorOptions here = options.device(at::kCPU);
  if (is_for_gpu) here = here.pinned_memory(true);
  return at::empty(sizes, here)
      .bernoulli_(1 - rate, generator)
      .div_(1 - rate)
      .to(options.device(), /*non_blocking=*/is_for_gpu);
}

}  // namespace

KeyedDraws::KeyedDraws(std::uint64_t a, std::uint64_t b, std::uint64_t c, std::uint64_t d)
    : state_(mix_key(a, b, c, d)) {}

std::uint64_t KeyedDraws::next() {
  const std::uint64_t drawn = mix(state_);
  state_ += kStride;
  return drawn;
}

std::uint64_t KeyedDraws::below(std::uint64_t bound) {
  // Draws above the last whole multiple of the bound are thrown away.
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  const std::uint64_t excess = (kMost % bound + 1) % bound;
  std::uint64_t drawn = next();
  while (drawn > kMost - excess) drawn = next();
  return drawn % bound;
}

at::Generator make_generator(std::uint64_t a, std::uint64_t b, std::uint64_t c, std::uint64_t d) {
  return at::make_generator<at::CPUGeneratorImpl>(mix_key(a, b, c, d));
}

at::Generator make_generator(const DrawPlace& place, const RandomKey& key) {
  // The layer's index takes the low half, so that the first draw has the key of a layer's only one.
  constexpr unsigned kLayerBits = 32;
  return make_generator(key.seed, static_cast<std::uint64_t>(key.step),
                        place.layer.index() | place.draw << kLayerBits, key.micro_batch.index());
}

at::Tensor draw_keyed_mask(at::IntArrayRef sizes, const at::TensorOptions& options, double rate,
                           const DrawPlace& place, const RandomKey& key) {
  at::Generator generator = make_generator(place, key);
  if (!key.rows) return draw_mask(sizes, options, rate, generator);
  std::vector<std::int64_t> whole = sizes.vec();
  whole.front() = key.rows->all;
  return draw_mask(whole, options, rate, generator).narrow(0, key.rows->first, key.rows->count);
}

at::Tensor drop(const at::Tensor& x, double rate, LayerId layer, const RandomKey& key,
                bool training) {
  if (!training || rate == 0) return x;
  // at::dropout takes no generator, so the mask is drawn here, by key.
  if (key.rows) require_samples(x, layer, key.rows->count);
  return x * draw_keyed_mask(x.sizes(), x.options(), rate, {layer}, key);
}

}  // namespace frazil
