#include "exec/data/augmentation.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include <mutex>

#include "exec/tensors/keyed_random.h"
#include "profiles/error.h"

namespace frazil {
namespace {

constexpr std::uint64_t kAugmentation = 0x6175676d;  // separates these draws from those of layers

struct Shift {
  int down = 0;
  int right = 0;
};

Shift draw_shift(int pixels, std::uint64_t seed, std::int64_t variant, std::int64_t sample) {
  at::Generator generator = make_generator(seed, kAugmentation, static_cast<std::uint64_t>(variant),
                                           static_cast<std::uint64_t>(sample));
  const std::lock_guard<std::mutex> lock(generator.mutex());
  auto* const random = at::check_generator<at::CPUGeneratorImpl>(generator);
  const auto ways = static_cast<std::uint64_t>(2 * pixels + 1);
  // The remainder of 64 bits favours no value noticeably.
  const auto draw = [&] { return static_cast<int>(random->random64() % ways) - pixels; };
  const int down = draw();
  return {down, draw()};
}

// Returns from where each of `size` places takes its pixel: what comes in repeats the edge.
at::Tensor find_places(std::int64_t size, int by) {
  return at::clamp(at::arange(size, at::kLong) - by, 0, size - 1);
}

}  // namespace

std::int64_t variant_of(const AugmentationConfig& config, int epoch) {
  if (!config.is_random()) return 0;
  return config.variants == 0 ? epoch : epoch % config.variants;
}

std::optional<int> count_variants(const AugmentationConfig& config) {
  if (!config.is_random()) return 1;
  if (config.variants == 0) return std::nullopt;
  return config.variants;
}

void augment(std::vector<Samples>& micro_batches, std::span<const std::int64_t> samples,
             const AugmentationConfig& config, std::uint64_t seed, std::int64_t variant) {
  if (!config.is_random()) return;
  std::size_t next = 0;
  for (Samples& micro_batch : micro_batches) {
    at::Tensor& images = micro_batch.inputs.at(0);
    ENSURE(images.dim() == 4, "images");
    at::Tensor moved = at::empty_like(images);
    for (std::int64_t row = 0; row < images.size(0); ++row) {
      const Shift shift = draw_shift(config.pixels, seed, variant, samples[next++]);
      moved[row].copy_(images[row]
                           .index_select(1, find_places(images.size(2), shift.down))
                           .index_select(2, find_places(images.size(3), shift.right)));
    }
    images = moved;
  }
  ENSURE(next == samples.size(), "a number for each row");
}

}  // namespace frazil
