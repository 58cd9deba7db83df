#include "exec/data/augmentation.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>
#include <mutex>

#include "exec/tensors/keyed_random.h"
#include "profiles/error.h"

namespace frazil {
namespace {

constexpr std::uint64_t kAugmentation = 0x6175676d;  // separates these draws from those of layers

struct Move {
  int down = 0;
  int right = 0;
  bool turned = false;
};

Move draw_move(const AugmentationConfig& config, std::uint64_t seed, std::int64_t variant,
               std::int64_t sample) {
  at::Generator generator = make_generator(seed, kAugmentation, static_cast<std::uint64_t>(variant),
                                           static_cast<std::uint64_t>(sample));
  const std::lock_guard<std::mutex> lock(generator.mutex());
  auto* const random = at::check_generator<at::CPUGeneratorImpl>(generator);
  const auto ways = static_cast<std::uint64_t>(2 * config.pixels + 1);
  // The remainder of 64 bits favours no value noticeably.
  const auto draw = [&] { return static_cast<int>(random->random64() % ways) - config.pixels; };
  Move move;
  move.down = draw();
  move.right = draw();
  move.turned = config.flip && random->random64() % 2 == 1;
  return move;
}

// Returns from where each of `size` places takes its pixel: what comes in repeats the edge.
at::Tensor find_places(std::int64_t size, int by) {
  return at::clamp(at::arange(size, at::kLong) - by, 0, size - 1);
}

void shift_image(const at::Tensor& from, const at::Tensor& to, const Move& move) {
  to.copy_(from.index_select(1, find_places(from.size(1), move.down))
               .index_select(2, find_places(from.size(2), move.right)));
}

// Returns by channel what a pixel of 0 is after the normalization.
std::vector<float> black_of(const Normalization& normalization, std::int64_t channels) {
  const Samples dark{{at::zeros({1, channels, 1, 1})}, at::zeros({1}, at::kLong)};
  const at::Tensor black = SampleSource({dark}, normalization).whole().inputs.at(0).flatten();
  const auto* const values = black.const_data_ptr<float>();
  return {values, values + channels};
}

// Writes the row that comes out where one of `size` pixels moves to the right by `by`; null: none
// comes in.
void crop_row(const float* from, float* to, std::int64_t size, int by, float black) {
  const std::int64_t left = std::clamp<std::int64_t>(by, 0, size);
  const std::int64_t right =
      from == nullptr ? left : std::clamp<std::int64_t>(size + by, left, size);
  std::fill(to, to + left, black);
  if (right > left) std::copy(from + left - by, from + right - by, to + left);
  std::fill(to + right, to + size, black);
}

// Goes through the rows by itself: a training loads thousands of images a second, and slices of
// tensors would take longer than their copies.
void crop_image(const at::Tensor& from, const at::Tensor& to, const Move& move,
                const std::vector<float>& black) {
  const std::int64_t rows = from.size(1);
  const std::int64_t size = from.size(2);
  const auto* const pixels = from.const_data_ptr<float>();
  auto* out = to.mutable_data_ptr<float>();
  for (std::size_t channel = 0; channel < black.size(); ++channel) {
    const float* const image = pixels + static_cast<std::int64_t>(channel) * rows * size;
    for (std::int64_t row = 0; row < rows; ++row, out += size) {
      const std::int64_t source = row - move.down;
      const bool is_seen = source >= 0 && source < rows;
      crop_row(is_seen ? image + source * size : nullptr, out, size, move.right, black[channel]);
      if (move.turned) std::reverse(out, out + size);
    }
  }
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
             const AugmentationConfig& config, std::uint64_t seed, std::int64_t variant,
             const Normalization& normalization) {
  if (!config.is_random()) return;
  std::size_t next = 0;
  for (Samples& micro_batch : micro_batches) {
    at::Tensor& images = micro_batch.inputs.at(0);
    ENSURE(images.dim() == 4 && images.is_contiguous(), "images");
    const std::vector<float> black = black_of(normalization, images.size(1));
    at::Tensor moved = at::empty_like(images);
    for (std::int64_t row = 0; row < images.size(0); ++row) {
      const Move move = draw_move(config, seed, variant, samples[next++]);
      if (config.crops()) {
        crop_image(images[row], moved[row], move, black);
      } else {
        shift_image(images[row], moved[row], move);
      }
    }
    images = moved;
  }
  ENSURE(next == samples.size(), "a number for each row");
}

}  // namespace frazil
