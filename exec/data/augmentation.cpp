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

// Returns what a pixel of 0 is after the normalization, [channels, 1, 1].
at::Tensor black_of(const Normalization& normalization) {
  const auto channels = static_cast<std::int64_t>(normalization.mean.size());
  const Samples dark{{at::zeros({1, channels, 1, 1})}, at::zeros({1}, at::kLong)};
  return SampleSource({dark}, normalization).whole().inputs.at(0)[0];
}

// The places of `size` that stay in sight when all move by `by`, as they were before.
struct Seen {
  std::int64_t first = 0;
  std::int64_t count = 0;
};
Seen find_seen(std::int64_t size, int by) {
  const std::int64_t first = std::clamp<std::int64_t>(-by, 0, size);
  return {first, std::clamp<std::int64_t>(size - by, first, size) - first};
}

void crop_image(const at::Tensor& from, const at::Tensor& to, const Move& move,
                const at::Tensor& black) {
  if (black.defined()) {
    to.copy_(black.expand_as(to));
  } else {
    to.zero_();
  }
  const Seen rows = find_seen(from.size(1), move.down);
  const Seen columns = find_seen(from.size(2), move.right);
  if (rows.count > 0 && columns.count > 0) {
    to.narrow(1, rows.first + move.down, rows.count)
        .narrow(2, columns.first + move.right, columns.count)
        .copy_(from.narrow(1, rows.first, rows.count).narrow(2, columns.first, columns.count));
  }
  if (move.turned) to.copy_(to.flip({2}));
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
  const at::Tensor black = normalization.mean.empty() ? at::Tensor() : black_of(normalization);
  std::size_t next = 0;
  for (Samples& micro_batch : micro_batches) {
    at::Tensor& images = micro_batch.inputs.at(0);
    ENSURE(images.dim() == 4, "images");
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
