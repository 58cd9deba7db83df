// A feature is found by what made it, or not at all; deeper features take the place of those that
// they were computed from.

#include "exec/cache/feature_cache.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <numeric>
#include <random>

namespace frazil {
namespace {

using Found = FeatureCache::Found;

constexpr Bytes kFeature{64};
constexpr std::int64_t kSamples = 6;

StoreLimits memory_for(std::int64_t records) { return {Bytes{records * kFeature.count}, {}, {}}; }

// Layer l of the model has weights of hash 100 + l, unless told otherwise.
FeatureKey key_of(int depth, FeaturePrecision precision = FeaturePrecision::kFloat32) {
  FeatureKey key{.layers = std::vector<std::uint64_t>(static_cast<std::size_t>(depth)),
                 .precision = precision};
  std::iota(key.layers.begin(), key.layers.end(), 100);
  return key;
}

std::string feature_of(int depth, std::int64_t sample, int variant = 0) {
  std::string bytes =
      std::to_string(depth) + "/" + std::to_string(sample) + "/" + std::to_string(variant);
  bytes.resize(static_cast<std::size_t>(kFeature.count), '.');
  return bytes;
}

std::string read(FeatureCache& cache, const Found& found, std::size_t i) {
  std::string bytes(static_cast<std::size_t>(kFeature.count), '?');
  return cache.read(found, i, bytes.data()) ? bytes : "lost";
}

std::vector<std::int64_t> all_samples() {
  std::vector<std::int64_t> samples(kSamples);
  std::iota(samples.begin(), samples.end(), 0);
  return samples;
}

// Does what a training does for a micro-batch: looks for features, goes on from them, and stores
// what it computes. Returns the depth it went on from.
int pass(FeatureCache& cache, const std::vector<std::int64_t>& samples, int depth) {
  int from = 0;
  {
    const Found found = cache.find(samples, 0);
    from = found.depth;
    for (std::size_t i = 0; i < found.records.size(); ++i) {
      EXPECT_EQ(read(cache, found, i), feature_of(from, samples[i]));
    }
  }
  for (const std::int64_t sample : samples) cache.store(sample, 0, feature_of(depth, sample));
  return from;
}

class Features : public testing::Test {
 protected:
  FileSystem files_ = real_file_system();
};

TEST_F(Features, AreComputedOnceThenFound) {
  FeatureCache cache(files_, memory_for(kSamples), kSamples, 1, kFeature);
  cache.use(key_of(2), kFeature);
  EXPECT_EQ(pass(cache, {0, 1, 2}, 2), 0);
  EXPECT_EQ(pass(cache, {3, 4, 5}, 2), 0);
  EXPECT_TRUE(cache.is_whole());
  EXPECT_EQ(pass(cache, {5, 0, 3}, 2), 2);
  EXPECT_EQ(pass(cache, {4, 1, 2}, 2), 2);
  EXPECT_EQ(cache.counts(),
            (FeatureCounts{.stored = 6, .found = 6, .found_before = 0, .missed = 6}));
}

TEST_F(Features, AreFoundForAWholeMicroBatchOrNot) {
  FeatureCache cache(files_, memory_for(kSamples), kSamples, 1, kFeature);
  cache.use(key_of(2), kFeature);
  (void)pass(cache, {0, 1}, 2);
  EXPECT_EQ(cache.find(std::vector<std::int64_t>{0, 2}, 0).depth, 0);
  EXPECT_EQ(cache.find(std::vector<std::int64_t>{1, 0}, 0).depth, 2);
}

TEST_F(Features, OfADeeperCutGoOnFromThoseBeforeAndTakeTheirRoom) {
  FeatureCache cache(files_, memory_for(kSamples), kSamples, 1, kFeature);
  cache.use(key_of(2), kFeature);
  (void)pass(cache, all_samples(), 2);
  cache.use(key_of(4), kFeature);
  for (std::int64_t sample = kSamples; sample-- > 0;) EXPECT_EQ(pass(cache, {sample}, 4), 2);
  EXPECT_TRUE(cache.is_whole());
  EXPECT_EQ(pass(cache, all_samples(), 4), 4);
  EXPECT_EQ(cache.counts().turned_away, 0);
  EXPECT_EQ(cache.records()->used(FeatureTier::kMemory), Bytes{kSamples * kFeature.count});
}

TEST_F(Features, OfOtherWeightsAreNeverFound) {
  FeatureCache cache(files_, memory_for(2 * kSamples), kSamples, 1, kFeature);
  cache.use(key_of(3), kFeature);
  (void)pass(cache, all_samples(), 3);
  FeatureKey other = key_of(5);
  other.layers[1] = 7;
  cache.use(other, kFeature);
  EXPECT_EQ(cache.find(all_samples(), 0).depth, 0);
  EXPECT_EQ(cache.records()->used(FeatureTier::kMemory).count, 0) << "they are gone";
  cache.use(key_of(3), kFeature);
  EXPECT_EQ(cache.find(all_samples(), 0).depth, 0) << "and do not come back";
}

TEST_F(Features, OfAnotherPrecisionOrAShallowerCutAreNeverFound) {
  for (const FeatureKey& next : {key_of(5, FeaturePrecision::kBfloat16), key_of(2), FeatureKey{}}) {
    FeatureCache cache(files_, memory_for(2 * kSamples), kSamples, 1, kFeature);
    cache.use(key_of(3), kFeature);
    (void)pass(cache, all_samples(), 3);
    cache.use(next, kFeature);
    EXPECT_EQ(cache.find(all_samples(), 0).depth, 0);
  }
}

TEST_F(Features, StayUnderTheSameKey) {
  FeatureCache cache(files_, memory_for(kSamples), kSamples, 1, kFeature);
  cache.use(key_of(3), kFeature);
  (void)pass(cache, all_samples(), 3);
  cache.use(key_of(3), kFeature);
  EXPECT_EQ(cache.find(all_samples(), 0).depth, 3);
}

TEST_F(Features, OfVariantsAreKeptApart) {
  FeatureCache cache(files_, memory_for(2 * kSamples), kSamples, 2, kFeature);
  cache.use(key_of(1), kFeature);
  cache.store(3, 0, feature_of(1, 3, 0));
  const std::vector<std::int64_t> one{3};
  EXPECT_EQ(cache.find(one, 1).depth, 0);
  cache.store(3, 1, feature_of(1, 3, 1));
  EXPECT_EQ(read(cache, cache.find(one, 0), 0), feature_of(1, 3, 0));
  EXPECT_EQ(read(cache, cache.find(one, 1), 0), feature_of(1, 3, 1));
}

TEST_F(Features, ThatWereFoundCanBeReadThoughTheCacheGoesOn) {
  FeatureCache cache(files_, memory_for(kSamples), kSamples, 1, kFeature);
  cache.use(key_of(2), kFeature);
  (void)pass(cache, all_samples(), 2);
  const Found found = cache.find(all_samples(), 0);
  cache.use({}, {});
  for (std::size_t i = 0; i < kSamples; ++i) {
    EXPECT_EQ(read(cache, found, i), feature_of(2, static_cast<std::int64_t>(i)));
  }
}

TEST_F(Features, MoveFromDiskToMemoryWhenThereIsRoom) {
  const StoreLimits limits{Bytes{2 * kFeature.count}, Bytes{kSamples * kFeature.count},
                           std::filesystem::temp_directory_path()};
  FeatureCache cache(files_, limits, kSamples, 1, kFeature);
  cache.use(key_of(1), kFeature);
  const Found before = [&] {
    (void)pass(cache, {0, 1}, 1);
    return cache.find(std::vector<std::int64_t>{0, 1}, 0);
  }();
  cache.use(key_of(2), kFeature);
  {
    const Found held = before;  // its records still take memory, so the deeper ones go to disk
    (void)pass(cache, {0, 1}, 2);
  }
  EXPECT_EQ(cache.records()->used(FeatureTier::kDisk).count, 2 * kFeature.count);
  const_cast<Found&>(before).records.clear();
  EXPECT_EQ(pass(cache, {0, 1}, 2), 2);
  EXPECT_EQ(cache.counts().promoted, 2);
  EXPECT_EQ(cache.records()->used(FeatureTier::kDisk).count, 0);
  EXPECT_EQ(pass(cache, {1, 0}, 2), 2);
}

TEST_F(Features, ThatTheDiskLosesAreMissedOnceAndStoredAgain) {
  bool broken = false;
  FileSystem files = files_;
  files.read_at = [&broken, real = files_.read_at](int file, void* bytes, std::size_t size,
                                                   std::int64_t place) -> ssize_t {
    return broken ? -EIO : real(file, bytes, size, place);
  };
  FeatureCache cache(files,
                     {{}, Bytes{kSamples * kFeature.count}, std::filesystem::temp_directory_path()},
                     kSamples, 1, kFeature);
  cache.use(key_of(2), kFeature);
  (void)pass(cache, all_samples(), 2);
  broken = true;
  EXPECT_EQ(read(cache, cache.find(std::vector<std::int64_t>{4}, 0), 0), "lost");
  broken = false;
  EXPECT_EQ(pass(cache, {4}, 2), 0);
  EXPECT_EQ(pass(cache, all_samples(), 2), 2);
  EXPECT_EQ(cache.counts().lost, 1);
}

// Whatever the sequence of micro-batches, depths, weights and limits, a feature that is found was
// stored under that very key, and a training reads what it would have computed.
TEST_F(Features, OfARandomTrainingAreAlwaysTheRightOnes) {
  const unsigned seed = 20261122;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const auto draw = [&](int count) { return static_cast<int>(random() % unsigned(count)); };
  int hits = 0;
  for (int training = 0; training < 60; ++training) {
    const StoreLimits limits{Bytes{draw(8) * kFeature.count}, Bytes{draw(8) * kFeature.count},
                             std::filesystem::temp_directory_path()};
    FeatureCache cache(files_, limits, kSamples, 1, kFeature);
    FeatureKey key = key_of(0);
    for (int step = 0; step < 60; ++step) {
      if (draw(6) == 0) {
        const FeatureKey old = std::exchange(key, key_of(draw(6)));
        // Layers that have thawed and trained have other weights for ever.
        const bool trains = draw(3) == 0;
        for (std::size_t l = 0; l < key.layers.size(); ++l) {
          if (trains) key.layers[l] = random();
          if (!trains && l < old.layers.size()) key.layers[l] = old.layers[l];
        }
        cache.use(key, kFeature);
      }
      if (key.depth() == 0) continue;
      // A feature says by which weights it was made.
      const auto made = [&](int depth, std::int64_t sample) {
        std::uint64_t hash = 0;
        for (int l = 0; l < depth; ++l) hash = hash * 31 + key.layers[static_cast<std::size_t>(l)];
        return feature_of(depth, sample, static_cast<int>(hash % 100003));
      };
      const std::vector<std::int64_t> samples{draw(3), 3 + draw(3)};
      {
        const Found found = cache.find(samples, 0);
        hits += found.depth > 0 ? 1 : 0;
        for (std::size_t i = 0; i < found.records.size(); ++i) {
          ASSERT_EQ(read(cache, found, i), made(found.depth, samples[i]));
        }
      }
      for (const std::int64_t sample : samples) {
        cache.store(sample, 0, made(key.depth(), sample));
      }
    }
  }
  EXPECT_GT(hits, 500);
}

TEST_F(Features, AreKeptInEachTierAsFarAsIsAdmitted) {
  StoreLimits limits = memory_for(kSamples);
  limits.disk = Bytes{kSamples * kFeature.count};
  limits.folder = testing::TempDir();
  FeatureCache cache(files_, limits, kSamples, 1, kFeature);
  cache.use(key_of(2), kFeature, {.in_memory = 2, .on_disk = 1});
  pass(cache, all_samples(), 2);
  EXPECT_EQ(cache.count(FeatureTier::kMemory), 2);
  EXPECT_EQ(cache.count(FeatureTier::kDisk), 1);
  EXPECT_EQ(cache.counts().turned_away, 3);
  // Records on disk stay there while memory is kept for other samples.
  EXPECT_EQ(pass(cache, {2}, 2), 2);
  EXPECT_EQ(cache.counts().promoted, 0);
  EXPECT_EQ(cache.records()->used(FeatureTier::kMemory), kFeature * 2);
  EXPECT_EQ(cache.records()->traffic(FeatureTier::kDisk).written, kFeature);
  EXPECT_EQ(cache.records()->traffic(FeatureTier::kDisk).read, kFeature);
  EXPECT_EQ(cache.records()->traffic(FeatureTier::kMemory).written, kFeature * 2);
}

TEST_F(Features, OfTheDepthBeforeKeepTheirRoomFromThoseThatAreNew) {
  FeatureCache cache(files_, memory_for(kSamples), kSamples, 1, kFeature);
  cache.use(key_of(2), kFeature, {.in_memory = 4, .on_disk = 0});
  pass(cache, {0, 1, 2, 3}, 2);
  cache.use(key_of(3), kFeature, {.in_memory = 4, .on_disk = 0});
  EXPECT_EQ(pass(cache, {4, 5}, 3), 0);
  EXPECT_EQ(pass(cache, {0, 1, 2, 3}, 3), 2);
  EXPECT_EQ(pass(cache, {0, 1, 2, 3}, 3), 3);
  EXPECT_EQ(cache.counts().turned_away, 2);
  EXPECT_EQ(cache.find_source().in_memory, 4);
}

// Features are what all goes on from while nothing is admitted at deeper depths, however many of
// these come.
TEST_F(Features, ServeOnWhereNothingIsAdmittedOfDeeperOnes) {
  FeatureCache cache(files_, memory_for(kSamples), kSamples, 1, kFeature);
  cache.use(key_of(2), kFeature);
  pass(cache, all_samples(), 2);
  for (const int depth : {3, 4}) {
    cache.use(key_of(depth), kFeature, {.in_memory = 0, .on_disk = 0});
    EXPECT_EQ(pass(cache, {0, 1, 2}, depth), 2);
    EXPECT_EQ(pass(cache, {0, 1, 2}, depth), 2);
    EXPECT_EQ(cache.find_source().depth, 2);
    EXPECT_EQ(cache.find_source().in_memory, kSamples);
    EXPECT_EQ(cache.depth_before(), 2);
  }
  EXPECT_EQ(cache.counts().stored, kSamples);
  EXPECT_EQ(cache.counts().turned_away, 0);
  cache.use(key_of(5), kFeature);
  EXPECT_EQ(pass(cache, all_samples(), 5), 2);
  EXPECT_EQ(cache.find_source().depth, 5);
  EXPECT_EQ(cache.depth_before(), 0);
}

}  // namespace
}  // namespace frazil
