#include "exec/data/sample_loader.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "exec/data/augmentation.h"

namespace frazil {
namespace {

constexpr int kSamples = 50;
constexpr int kBatch = 8;  // 7 places an epoch, the last of 2 samples
constexpr RunPlaces kPlaces{kSamples, kBatch};

LoaderConfig make_config(int variants) {
  LoaderConfig config;
  config.micro_batch_size = 4;
  config.augmentation = {.kind = AugmentationConfig::Kind::kShift, .pixels = 2};
  config.augmentation.variants = variants;
  config.seed = 5;
  return config;
}

Samples make_samples() { return make_synthetic(kSamples, 1, 1, 8, 4, 3).train.whole(); }

// Makes the micro-batches on the spot.
std::vector<Samples> make_plainly(const Samples& samples, const LoaderConfig& config,
                                  const SampleRange& range) {
  const auto order = epoch_order(kSamples, config.seed, range.epoch);
  std::vector<Samples> made =
      gather_micro_batches(samples, order, range.first, range.count, config.micro_batch_size);
  const std::vector<std::int64_t> numbers(order.begin() + range.first,
                                          order.begin() + range.first + range.count);
  augment(made, numbers, config.augmentation, config.seed,
          variant_of(config.augmentation, range.epoch));
  return made;
}

void expect_equal(const std::vector<Samples>& a, const std::vector<Samples>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t m = 0; m < a.size(); ++m) {
    EXPECT_TRUE(at::equal(a[m].inputs.at(0), b[m].inputs.at(0))) << "micro-batch " << m;
    EXPECT_TRUE(at::equal(a[m].labels, b[m].labels)) << "micro-batch " << m;
  }
}

TEST(RunPlaces, AStepOfSeveralPlacesEndsWithItsEpoch) {
  EXPECT_EQ(kPlaces.of_epoch(), 7);
  EXPECT_EQ(kPlaces.range(0, 1), (SampleRange{0, 0, 8}));
  EXPECT_EQ(kPlaces.range(6, 1), (SampleRange{0, 48, 2}));
  EXPECT_EQ(kPlaces.range(7, 1), (SampleRange{1, 0, 8}));
  EXPECT_EQ(kPlaces.range(4, 2), (SampleRange{0, 32, 16}));
  EXPECT_EQ(kPlaces.range(5, 2), (SampleRange{0, 40, 10}));
  EXPECT_EQ(kPlaces.range(6, 4), (SampleRange{0, 48, 2}));
  EXPECT_EQ(kPlaces.count({0, 40, 10}), 2);
  EXPECT_EQ(kPlaces.count({0, 48, 2}), 1);
}

TEST(RunPlaces, WhateverStepsTakeAtOnceEverySampleComesOncePerEpoch) {
  const std::uint64_t seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  const LoaderConfig config = make_config(0);
  SampleLoader loader(make_samples(), config);
  Step place = 0;
  for (int epoch = 0; epoch < 20; ++epoch) {
    std::vector<int> counts(kSamples);
    while (place < (epoch + 1) * kPlaces.of_epoch()) {
      const SampleRange range = kPlaces.range(place, 1 + static_cast<Step>(random() % 4));
      ASSERT_EQ(range.epoch, epoch);
      for (const std::int64_t number : loader.cache_numbers(range)) {
        ++counts[static_cast<std::size_t>(number - std::int64_t{epoch} * kSamples)];
      }
      place += kPlaces.count(range);
    }
    EXPECT_EQ(counts, std::vector<int>(kSamples, 1)) << "epoch " << epoch;
  }
}

TEST(SampleLoader, GivesWhatIsMadeOnTheSpotWhetherItWasExpectedOrNot) {
  const LoaderConfig config = make_config(2);
  const Samples samples = make_samples();
  SampleLoader loader(samples, config);
  for (Step place = 0; place < 4 * kPlaces.of_epoch(); ++place) {
    const SampleRange range = kPlaces.range(place, 1);
    const std::vector<Samples> made = loader.take(range);
    // Next comes what was expected, something else, or something that nobody told of.
    if (place % 3 != 2) loader.expect(kPlaces.range(place + 1 + place % 3, 1));
    expect_equal(made, make_plainly(samples, config, range));
  }
}

// As windows of steps ask: several are expected at once, fewer are taken, and some are expected
// anew.
TEST(SampleLoader, GivesSeveralThatWereExpectedAtOnce) {
  const LoaderConfig config = make_config(2);
  const Samples samples = make_samples();
  SampleLoader loader(samples, config);
  const auto ranges_from = [](Step place, Step count) {
    std::vector<SampleRange> ranges;
    for (Step i = 0; i < count; ++i) ranges.push_back(kPlaces.range(place + i, 1));
    return ranges;
  };
  const Step all = 3 * kPlaces.of_epoch();
  for (Step place = 0, taken = 1; place + taken <= all; place += taken, taken = taken % 3 + 1) {
    loader.expect(ranges_from(place, 3));
    for (const SampleRange& range : ranges_from(place, taken)) {
      expect_equal(loader.take(range), make_plainly(samples, config, range));
    }
  }
}

TEST(SampleLoader, TellsASampleInEachVariantByItsOwnNumber) {
  const LoaderConfig config = make_config(3);
  SampleLoader loader(make_samples(), config);
  for (int epoch = 0; epoch < 7; ++epoch) {
    const auto order = epoch_order(kSamples, config.seed, epoch);
    const std::vector<std::int64_t> numbers = loader.cache_numbers({epoch, 10, 3});
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(numbers[i], epoch % 3 * kSamples + order[10 + i]) << "epoch " << epoch;
    }
  }
}

}  // namespace
}  // namespace frazil
