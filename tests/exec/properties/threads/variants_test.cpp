// Random augmentation goes with a cache: each epoch draws one of K variants, and what is cached of
// a variant serves that one alone.

#include <gtest/gtest.h>

#include <ATen/ATen.h>

#include <numeric>
#include <set>

#include "exec/data/augmentation.h"
#include "exec/train/trainer.h"
#include "profiles/error.h"
#include "tests/exec/support/tiny_run.h"
#include "tests/support/sanitizer.h"

namespace frazil {
namespace {

constexpr AugmentationConfig shift(int pixels, int variants) {
  return {.kind = AugmentationConfig::Kind::kShift,
          .pixels = pixels,
          .flip = false,
          .variants = variants};
}

std::vector<std::int64_t> numbers(std::int64_t count) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(count));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

at::Tensor augmented(const Dataset& data, const std::vector<std::int64_t>& order,
                     const AugmentationConfig& config, std::uint64_t seed, std::int64_t variant,
                     int size) {
  auto micro_batches =
      gather_micro_batches(data.train, order, 0, static_cast<std::int64_t>(order.size()), size);
  augment(micro_batches, order, config, seed, variant);
  std::vector<at::Tensor> images;
  for (const Samples& micro_batch : micro_batches) images.push_back(micro_batch.inputs[0]);
  return at::cat(images);
}

// Each image is the old one moved, with the edge repeated where nothing was.
TEST(Augmentation, MovesEachImageByAFewPixels) {
  const Dataset data = make_synthetic(40, 1, 2, 5, 10, 3);
  const at::Tensor before = data.train.whole().inputs[0];
  const at::Tensor after = augmented(data, numbers(40), shift(2, 0), 7, 1, 8);
  std::vector<int> seen(25);
  for (std::int64_t row = 0; row < 40; ++row) {
    int ways = 0;
    for (int down = -2; down <= 2; ++down) {
      for (int right = -2; right <= 2; ++right) {
        at::Tensor moved = at::empty_like(before[row]);
        for (int y = 0; y < 5; ++y) {
          for (int x = 0; x < 5; ++x) {
            moved.select(1, y).select(1, x).copy_(before[row]
                                                      .select(1, std::clamp(y - down, 0, 4))
                                                      .select(1, std::clamp(x - right, 0, 4)));
          }
        }
        if (!at::equal(moved, after[row])) continue;
        ++ways;
        ++seen[static_cast<std::size_t>(5 * (down + 2) + right + 2)];
      }
    }
    EXPECT_EQ(ways, 1) << "image " << row;
  }
  EXPECT_GE(25 - std::count(seen.begin(), seen.end(), 0), 15) << "all ways are drawn";
}

TEST(Augmentation, FollowsFromSeedVariantAndSampleAlone) {
  const Dataset data = make_synthetic(24, 1, 1, 8, 10, 3);
  const std::vector<std::int64_t> order = epoch_order(24, 5, 2);
  const at::Tensor whole = augmented(data, numbers(24), shift(2, 3), 7, 1, 24);
  const at::Tensor shuffled = augmented(data, order, shift(2, 3), 7, 1, 5);
  for (std::size_t i = 0; i < order.size(); ++i) {
    EXPECT_TRUE(at::equal(shuffled[static_cast<std::int64_t>(i)], whole[order[i]]));
  }
  EXPECT_FALSE(at::equal(augmented(data, numbers(24), shift(2, 3), 7, 2, 24), whole));
  EXPECT_FALSE(at::equal(augmented(data, numbers(24), shift(2, 3), 8, 1, 24), whole));
  EXPECT_TRUE(at::equal(augmented(data, numbers(24), {}, 7, 1, 24), data.train.whole().inputs[0]));
}

// Every place of a cropped image, written out: what lies outside of the old image is black.
at::Tensor cropped_by_hand(const at::Tensor& image, int down, int right, bool turned, float black) {
  at::Tensor result = at::full_like(image, black);
  const std::int64_t size = image.size(1);
  for (std::int64_t y = 0; y < size; ++y) {
    for (std::int64_t x = 0; x < size; ++x) {
      if (y - down < 0 || y - down >= size || x - right < 0 || x - right >= size) continue;
      const std::int64_t column = turned ? size - 1 - x : x;
      result.select(1, y).select(1, column).copy_(image.select(1, y - down).select(1, x - right));
    }
  }
  return result;
}

TEST(Augmentation, CropsAndTurnsImagesAmongBlackPixels) {
  AugmentationConfig config;
  config.kind = AugmentationConfig::Kind::kCrop;
  config.pixels = 3;
  config.flip = true;
  const Normalization normalization{.mean = {0.5, 0.5}, .deviation = {0.25, 0.25}};
  const SampleSource source({make_synthetic(60, 1, 2, 4, 10, 3).train.whole()}, normalization);
  const at::Tensor before = source.whole().inputs[0];
  auto micro_batches = gather_micro_batches(source, numbers(60), 0, 60, 7);
  augment(micro_batches, numbers(60), config, 7, 1, normalization);
  std::set<int> seen;
  for (std::int64_t row = 0; row < 60; ++row) {
    const at::Tensor image = micro_batches[static_cast<std::size_t>(row / 7)].inputs[0][row % 7];
    int ways = 0;
    for (int way = 0; way < 7 * 7 * 2; ++way) {
      const at::Tensor cropped =
          cropped_by_hand(before[row], way / 14 - 3, way / 2 % 7 - 3, way % 2 == 1, -2);
      if (!at::equal(image, cropped)) continue;
      ++ways;
      seen.insert(way);
    }
    EXPECT_GE(ways, 1) << row;
  }
  EXPECT_GT(seen.size(), 25U);
}

TEST(Augmentation, DrawsVariantsInTurnOrAnewInEveryEpoch) {
  for (int epoch = 0; epoch < 7; ++epoch) {
    EXPECT_EQ(variant_of({}, epoch), 0);
    EXPECT_EQ(variant_of(shift(1, 3), epoch), epoch % 3);
    EXPECT_EQ(variant_of(shift(1, 0), epoch), epoch);
  }
  EXPECT_EQ(count_variants({}), 1);
  EXPECT_EQ(count_variants(shift(1, 3)), 3);
  EXPECT_EQ(count_variants(shift(1, 0)), std::nullopt);
}

constexpr Bytes kFeature{17 * 32 * 4};

// Blocks are frozen up to the head from the second epoch on.
TrainOptions make_options(int variants, int epochs, bool caches) {
  TrainOptions options;
  options.config = tiny_config();
  options.config.epochs = epochs;
  vit_of(options.config).dropout = 0.1;
  options.config.freeze.policy =
      AlphaFreeze{.alpha = 0.99, .start = 1, .interval = 1000, .unit = PaceUnit::kEpochs};
  options.config.augmentation = shift(1, variants);
  if (caches) options.config.cache.kind = CacheConfig::Kind::kOn;
  options.profile = tiny_profile(options.config);
  options.cluster = tiny_cluster(Bytes{1 << 30});
  options.command = "frazil train";
  return options;
}

TrainResult run_variants(const TrainOptions& options) {
  return train(options, load_data(options.config));
}

void expect_same_training(const TrainResult& a, const TrainResult& b) {
  EXPECT_EQ(a.weight_hash, b.weight_hash);
  EXPECT_EQ(a.loss, b.loss);
}

TEST(CachedVariants, HaveTheBitsOfAnUncachedRunThatDrawsTheSame) {
  for (const int variants : {1, 2, 3}) {
    if (kThreadsAreWatched && variants != 2) continue;
    SCOPED_TRACE(variants);
    const int epochs = 1 + 2 * variants + 1;
    const TrainResult cached = run_variants(make_options(variants, epochs, true));
    expect_same_training(cached, run_variants(make_options(variants, epochs, false)));
    const FeatureCounts& counts = cached.cache->counts;
    EXPECT_EQ(counts.stored, variants * kTinySamples);
    EXPECT_EQ(counts.missed, variants * kTinySamples) << "a variant is never found as another";
    EXPECT_EQ(counts.found, (variants + 1) * kTinySamples);
    EXPECT_EQ(cached.cache->in_memory, kFeature * (variants * kTinySamples));
    EXPECT_EQ(cached.trace.provenance.at("cache"),
              "variants, " + std::to_string(variants) + " of each sample");
  }
}

TEST(CachedVariants, AreDifferentDraws) {
  EXPECT_NE(run_variants(make_options(1, 4, false)).weight_hash,
            run_variants(make_options(2, 4, false)).weight_hash);
  EXPECT_NE(run_variants(make_options(0, 4, false)).weight_hash,
            run_variants(make_options(2, 4, false)).weight_hash);
  TrainOptions plain = make_options(1, 4, true);
  plain.config.augmentation = {};
  const TrainResult deterministic = run_variants(plain);
  EXPECT_NE(run_variants(make_options(1, 4, false)).weight_hash, deterministic.weight_hash);
  EXPECT_EQ(deterministic.trace.provenance.at("cache"), "deterministic");
}

// One round of all variants fills, and features are read only in epochs after that round.
TEST(CachedVariants, AreChargedWithAllTheirBytesAndEpochs) {
  const TrainResult declined = run_variants(make_options(3, 1 + 3, true));
  EXPECT_EQ(declined.cache->counts.stored, 0);
  const TrainResult filled = run_variants(make_options(3, 1 + 4, true));
  for (const FreezeEvent& event : filled.trace.events) {
    const auto* cache = std::get_if<CacheEvent>(&event.what);
    if (cache == nullptr || cache->change != CacheChange::kBegun) continue;
    EXPECT_EQ(cache->samples, 3 * kTinySamples);
    EXPECT_EQ(cache->memory, kFeature * (3 * kTinySamples));
  }
  EXPECT_EQ(filled.cache->counts.stored, 3 * kTinySamples);
  TrainOptions small = make_options(3, 1 + 9, true);
  small.config.cache.memory = kFeature * kTinySamples;
  const TrainResult some = run_variants(small);
  EXPECT_EQ(some.cache->counts.stored, kTinySamples) << "of one variant, for all that fits";
  small.config.cache = {};
  expect_same_training(some, run_variants(small));
}

TEST(CachedVariants, AreNamedAndFreshDrawsAreNeverCached) {
  const std::string head = R"({"format": "frazil.run", "version": 1, "cache": {"kind": "on"},)";
  const auto refusal = [&](const std::string& augmentation) -> std::string {
    try {
      (void)parse_run_config(head + R"("augmentation": )" + augmentation + "}", "run.json");
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(refusal(R"({"kind": "shift", "pixels": 2})"),
            "run.json:1: found a cache beside an augmentation that draws anew in every epoch at "
            "$.cache, expected \"variants\" in the augmentation, which names how many draws there "
            "are, or no cache");
  EXPECT_EQ(refusal(R"({"kind": "shift", "pixels": 2, "variants": 3})"), "");
  EXPECT_EQ(refusal("{}"), "");
  EXPECT_NE(refusal(R"({"kind": "shift", "pixels": 0})").find("$.augmentation.pixels"),
            std::string::npos);
  EXPECT_NE(refusal(R"({"variants": 3})").find("unknown key \"variants\""), std::string::npos);
  RunConfig config;
  config.augmentation = shift(2, 3);
  EXPECT_EQ(parse_run_config(to_json(config), "run.json"), config);
}

}  // namespace
}  // namespace frazil
