#include "analysis/ablation/predict/pipe_transformer_walk.h"

#include <gtest/gtest.h>

#include "profiles/error.h"
#include "tests/support/mask_of.h"
#include "tests/support/sample_models.h"

namespace frazil {
namespace {

using std::chrono::microseconds;

HeldFeatures in_memory(int depth) { return {depth, FeatureTier::kMemory}; }

class PipeTransformerWalk : public testing::Test {
 protected:
  PipeTransformerWalk() {
    options.batch_size = 64;
    options.micro_batch_sizes = {1};
  }
  std::vector<HeldSegment> walk(const std::vector<ForecastSegment>& segments) const {
    return walk_as_pipe_transformer({profile, cluster}, options, segments, store,
                                    kPipeTransformerCachesFrom);
  }

  // An embedding, six layers and a head, one block each.
  ModelProfile profile = make_chain(8, microseconds{100}, microseconds{100}, microseconds{100});
  Cluster cluster = make_uniform_cluster(4, Bytes{1'000'000}, kMemoryLink);
  SearchOptions options;
  // An epoch has 10 steps.
  std::optional<FeatureStore> store =
      FeatureStore{.samples = 640, .memory = {Bytes{1'000'000}, kMemoryLink}, .disk = {}};
};

TEST_F(PipeTransformerWalk, HalvesItsPipelineAsLayersFreeze) {
  const auto held = walk(
      {{0, 10, mask_of("11111111")}, {10, 10, mask_of("00001111")}, {20, 10, mask_of("00000001")}});
  const auto pipelines = [&](std::size_t k) { return held[k].plan.pipelines.size(); };
  EXPECT_EQ(pipelines(0), 1U);
  // Stages of the unfrozen model have 2 layers of 250 parameters; 4 layers in 2 stages are no more.
  EXPECT_EQ(pipelines(1), 2U);
  EXPECT_EQ(pipelines(2), 4U);
  for (const HeldSegment& segment : held) EXPECT_EQ(segment.plan.batch_size, 64);
}

TEST_F(PipeTransformerWalk, FillsItsCacheInTheEpochAfterADeeperPrefixFromThreeLayersOn) {
  const auto held = walk({{0, 10, mask_of("11111111")},
                          {10, 10, mask_of("00011111")},  // two layers and the embedding
                          {20, 15, mask_of("00001111")},  // three
                          {35, 15, mask_of("00000111")},
                          {50, 10, mask_of("00000111")}});
  EXPECT_EQ(held[0].cache, HeldCache{});
  EXPECT_EQ(held[1].cache, HeldCache{});
  EXPECT_EQ(held[2].cache, (HeldCache{in_memory(4), {}, 10}));
  EXPECT_EQ(held[3].cache, (HeldCache{in_memory(5), in_memory(4), 10}));
  EXPECT_EQ(held[4].cache, (HeldCache{in_memory(5)}));
}

TEST_F(PipeTransformerWalk, ReadsWhatWasCachedBeforeWhereAFillIsGivenUpAndLosesWhatThaws) {
  const auto held = walk({{0, 20, mask_of("00001111")},
                          {20, 5, mask_of("00000111")},
                          {25, 5, mask_of("00000011")},
                          {30, 5, mask_of("01111111")}});
  EXPECT_EQ(held[1].cache, (HeldCache{in_memory(5), in_memory(4), 10}));
  EXPECT_EQ(held[2].cache, (HeldCache{in_memory(6), in_memory(4), 10}));
  EXPECT_EQ(held[3].cache, HeldCache{});
}

TEST_F(PipeTransformerWalk, TakesTheFirstTierWithRoomAndNoneWhereNoneHas) {
  // All samples' features take 6400 bytes.
  store->memory.limit = Bytes{6399};
  EXPECT_EQ(walk({{0, 20, mask_of("00001111")}})[0].cache, HeldCache{});
  store->disk = {Bytes{6400}, kDiskLink};
  EXPECT_EQ(walk({{0, 20, mask_of("00001111")}})[0].cache.features,
            (HeldFeatures{4, FeatureTier::kDisk}));
  store.reset();
  EXPECT_EQ(walk({{0, 20, mask_of("00001111")}})[0].cache, HeldCache{});
}

TEST_F(PipeTransformerWalk, RefusesAMaskThatIsNoPrefix) {
  EXPECT_THROW(walk({{0, 20, mask_of("10101111")}}), InfeasibleError);
}

}  // namespace
}  // namespace frazil
