// Features that the processes of a host share are found as those of one cache are.

#include "exec/cache/host_features.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace frazil {
namespace {

constexpr Bytes kHostFeature{64};
constexpr std::int64_t kHostSamples = 24;

FeatureKey layers_to(int depth, std::uint64_t first = 100) {
  FeatureKey key{.layers = std::vector<std::uint64_t>(static_cast<std::size_t>(depth))};
  std::iota(key.layers.begin(), key.layers.end(), first);
  return key;
}

std::string feature_at(int depth, std::int64_t sample) {
  std::string bytes = std::to_string(depth) + "/" + std::to_string(sample);
  bytes.resize(static_cast<std::size_t>(kHostFeature.count), '.');
  return bytes;
}

// Looks for a sample's feature, and stores it as it is computed. Returns the depth it went on from.
int look_for(HostFeatures& features, std::int64_t sample, int depth) {
  const HostFeatures::Found found = features.find({&sample, 1});
  if (found.depth > 0) {
    std::string bytes(found.bytes, '?');
    EXPECT_TRUE(features.read(found, 0, bytes.data()));
    EXPECT_EQ(bytes, feature_at(found.depth, sample));
  }
  if (found.depth != depth) features.store(sample, feature_at(depth, sample));
  return found.depth;
}

// What is found of the depth before is let go of, so that its room can serve.
int look_for(FeatureCache& cache, std::int64_t sample, int depth) {
  const int from = cache.find({&sample, 1}, 0).depth;
  if (from != depth) cache.store(sample, 0, feature_at(depth, sample));
  return from;
}

TEST(HostFeatures, OfTwoProcessesAreFoundAsThoseOfOneCache) {
  const FileSystem files = real_file_system();
  const StoreLimits limits{kHostFeature * kHostSamples, {}, {}};
  HostFeatures one(files, limits, kHostSamples, kHostFeature);
  HostFeatures two(files, limits, kHostSamples, kHostFeature);
  ASSERT_TRUE(two.rows().take(one.rows().offer()));
  FeatureCache cache(files, limits, kHostSamples, 1, kHostFeature);
  std::mt19937 random(5);
  std::vector<std::int64_t> order(kHostSamples);
  std::iota(order.begin(), order.end(), 0);
  for (const int depth : {0, 2, 2, 4, 4, 5, 3, 3, 0}) {
    for (HostFeatures* const features : {&one, &two}) features->use(layers_to(depth), kHostFeature);
    cache.use(layers_to(depth), kHostFeature);
    EXPECT_EQ(one.depth_before(), cache.depth_before());
    std::shuffle(order.begin(), order.end(), random);
    if (depth == 0) continue;
    for (std::size_t i = 0; i < order.size(); ++i) {
      HostFeatures& features = random() % 2 == 0 ? one : two;
      EXPECT_EQ(look_for(features, order[i], depth), look_for(cache, order[i], depth));
      EXPECT_EQ(one.count(FeatureTier::kMemory), cache.count(FeatureTier::kMemory));
      EXPECT_EQ(two.find_source().depth, cache.find_source().depth);
      EXPECT_EQ(two.find_source().in_memory, cache.find_source().in_memory);
    }
  }
  const FeatureCounts a = one.counts();
  const FeatureCounts b = two.counts();
  EXPECT_EQ(a.found + b.found, cache.counts().found);
  EXPECT_EQ(a.found_before + b.found_before, cache.counts().found_before);
  EXPECT_EQ(a.missed + b.missed, cache.counts().missed);
  EXPECT_EQ(a.stored + b.stored, cache.counts().stored);
  EXPECT_GT(a.found, 0);
  EXPECT_GT(b.found_before, 0);
}

TEST(HostFeatures, KeepAsManyAsTheyMayInMemoryThenOnDisk) {
  const FileSystem files = real_file_system();
  const StoreLimits limits{kHostFeature * 10, kHostFeature * 8,
                           std::filesystem::temp_directory_path()};
  HostFeatures features(files, limits, kHostSamples, kHostFeature);
  features.use(layers_to(3), kHostFeature, {.in_memory = 6, .on_disk = 5});
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (std::int64_t sample = 0; sample < kHostSamples; ++sample)
      (void)look_for(features, sample, 3);
  }
  EXPECT_EQ(features.count(FeatureTier::kMemory), 6);
  EXPECT_EQ(features.count(FeatureTier::kDisk), 5);
  EXPECT_EQ(features.counts().found, 11);
  EXPECT_EQ(features.counts().turned_away, 2 * (kHostSamples - 11));
  // Without room nothing is stored, and what is held serves on.
  features.use(layers_to(4), kHostFeature, {.in_memory = 0, .on_disk = 0});
  EXPECT_EQ(features.find_source().depth, 3);
  EXPECT_EQ(look_for(features, 0, 4), 3);
  EXPECT_EQ(features.counts().turned_away, 2 * (kHostSamples - 11));
  features.use(layers_to(5), kHostFeature);
  EXPECT_EQ(features.depth_before(), 3);
  EXPECT_EQ(look_for(features, 1, 5), 3);
  EXPECT_EQ(look_for(features, 1, 5), 5);
}

TEST(HostFeatures, OfOtherWeightsAreNotFound) {
  const FileSystem files = real_file_system();
  HostFeatures features(files, {kHostFeature * kHostSamples, {}, {}}, kHostSamples, kHostFeature);
  features.use(layers_to(3), kHostFeature);
  EXPECT_EQ(look_for(features, 2, 3), 0);
  EXPECT_EQ(look_for(features, 2, 3), 3);
  features.use(layers_to(3, 500), kHostFeature);
  EXPECT_EQ(features.find_source().depth, 0);
  EXPECT_EQ(look_for(features, 2, 3), 0);
}

// A process that comes later is told what the others were told, and finds what they have stored.
TEST(HostFeatures, AreFoundByAProcessThatComesLater) {
  const FileSystem files = real_file_system();
  const StoreLimits limits{kHostFeature * kHostSamples, {}, {}};
  HostFeatures one(files, limits, kHostSamples, kHostFeature);
  const FeatureRoom room{.in_memory = 7, .on_disk = 0};
  one.use(layers_to(3), kHostFeature, room);
  (void)look_for(one, 2, 3);
  HostFeatures late(files, limits, kHostSamples, kHostFeature);
  ASSERT_TRUE(late.rows().take(one.rows().offer()));
  late.use(layers_to(3), kHostFeature, room);
  EXPECT_EQ(look_for(late, 2, 3), 3);
  EXPECT_EQ(look_for(one, 2, 3), 3);
  // One that begins with nothing takes nothing from the others.
  one.use(layers_to(4), kHostFeature, room);
  HostFeatures later(files, limits, kHostSamples, kHostFeature);
  ASSERT_TRUE(later.rows().take(one.rows().offer()));
  later.use(layers_to(4), kHostFeature, room);
  EXPECT_EQ(look_for(one, 2, 4), 3);
}

}  // namespace
}  // namespace frazil
