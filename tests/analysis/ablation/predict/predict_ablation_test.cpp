#include "analysis/ablation/predict/predict_ablation.h"

#include <gtest/gtest.h>

#include <random>

#include "analysis/ablation/predict/compute_limit.h"
#include "planner/prediction/plan_notation.h"
#include "tests/support/mask_of.h"
#include "tests/support/sample_models.h"
#include "tests/support/sanitizer.h"

namespace frazil {
namespace {

using std::chrono::microseconds;

// Four blocks of one layer with 100 us for each of F, I and W of a sample; 8 steps train all of
// them and 12 the last two. An epoch has 4 steps of 8 samples. Features of a batch take 80 bytes,
// which is 10 ns at the 8 GB/s of memory.
AblationQuestion make_question() {
  AblationQuestion question;
  question.forecast = {{0, 8, mask_of("1111")}, {8, 12, mask_of("0011")}};
  PredictionRules& rules = question.rules;
  rules.search.batch_size = 8;
  rules.search.micro_batch_sizes = {8};
  rules.store = FeatureStore{.samples = 32, .memory = {Bytes{1000}, kMemoryLink}, .disk = {}};
  rules.pipe_transformer_caches_from = 1;
  return question;
}

class PredictedArms : public testing::Test {
 protected:
  PredictedAblation predict() const { return predict_ablation({profile, cluster}, question); }

  ModelProfile profile = make_chain(4, microseconds{100}, microseconds{100}, microseconds{100});
  Cluster cluster =
      make_uniform_cluster(1, Bytes{100'000}, {microseconds{2}, BytesPerSecond{1'000'000'000}});
  AblationQuestion question = make_question();
};

// On one device everything can be added up by hand: there is one plan, and nothing waits.
TEST_F(PredictedArms, OnOneDeviceAreTheSumsOfTheirLayers) {
  const PredictedAblation ablation = predict();
  const auto parts = [&](Arm arm) { return ablation.run_of(arm).times.parts; };
  const auto steps = [](Duration time) { return RunParts{.steps = time}; };
  const Duration whole = microseconds{8800};   // 4 F, 3 I and 4 W
  const Duration half = microseconds{5600};    // 4 F, 1 I and 2 W under 0011
  const Duration cached = microseconds{4000};  // without the F of the prefix
  const Duration written{10};
  for (const Arm arm : {Arm::kOneDevice, Arm::kDataParallel, Arm::kUnfrozen}) {
    EXPECT_EQ(parts(arm), steps(20 * whole)) << facts_of(arm).name;
  }
  for (const Arm arm : {Arm::kFreezeOnly, Arm::kAutoPipe, Arm::kAutoPipeReplicas}) {
    EXPECT_EQ(parts(arm), steps(8 * whole + 12 * half)) << facts_of(arm).name;
  }
  const RunParts with_cache{.steps = 8 * whole + 12 * cached,
                            .filling = 4 * (half + written - cached)};
  for (const Arm arm : {Arm::kAutoPipeCache, Arm::kAll, Arm::kPipeTransformer}) {
    EXPECT_EQ(parts(arm).steps, with_cache.steps) << facts_of(arm).name;
    EXPECT_EQ(parts(arm).filling, with_cache.filling) << facts_of(arm).name;
  }
  // Under 1001 the gradient goes down to layer 0: 4 F, 3 I and 2 W. Nothing can be cached.
  EXPECT_EQ(parts(Arm::kFromTop), steps(8 * whole + 12 * microseconds{7200}));
  // 124,800 us and 40 ns of `all` are 14.18 whole steps.
  EXPECT_EQ(ablation.run_of(Arm::kAll).total(), microseconds{124'800} + Duration{40});
  EXPECT_EQ(ablation.shorter_steps, 14);
  EXPECT_EQ(parts(Arm::kShorter), steps(14 * whole));
  EXPECT_EQ(ablation.compute_limit, 8 * whole + 12 * cached);
  EXPECT_EQ(ablation.steps, 20);
}

TEST_F(PredictedArms, AreMarkedWhereNoOtherIsFasterAndControlsAreLeftOut) {
  const PredictedAblation ablation = predict();
  const auto fastest = [&](Arm arm) { return is_fastest(ablation, ablation.run_of(arm)); };
  EXPECT_TRUE(fastest(Arm::kAll));
  EXPECT_TRUE(fastest(Arm::kAutoPipeCache)) << "it takes as long";
  EXPECT_FALSE(fastest(Arm::kFreezeOnly));
  EXPECT_FALSE(fastest(Arm::kShorter));
  EXPECT_DOUBLE_EQ(*find_speed(ablation, ablation.run_of(Arm::kFreezeOnly)),
                   176'000.0 / (8 * 8800 + 12 * 5600));
  EXPECT_FALSE(find_speed(ablation, ablation.run_of(Arm::kShorter)).has_value());
}

TEST_F(PredictedArms, OfRandomMasksFollowTheirSeedAndFreezeAsMany) {
  std::set<std::string> masks;
  for (question.seed = 1; question.seed < 20; ++question.seed) {
    const PredictedRun run = predict().run_of(Arm::kRandomMasks);
    ASSERT_EQ(run.walk.size(), 2U);
    EXPECT_EQ(run.walk[1].segment.mask.frozen_count(), 2);
    EXPECT_EQ(run.walk[1].segment.steps, 12);
    masks.insert(run.walk[1].segment.mask.text());
  }
  EXPECT_EQ(masks, (std::set<std::string>{"0011", "0101", "1001"}));
}

TEST_F(PredictedArms, ThatCacheNeedAStore) {
  question.rules.store.reset();
  const PredictedAblation ablation = predict();
  EXPECT_EQ(ablation.run_of(Arm::kAll).times.parts,
            ablation.run_of(Arm::kAutoPipeReplicas).times.parts);
  EXPECT_EQ(ablation.compute_limit, microseconds{8 * 8800 + 12 * 5600});
}

// Each device has room for half of the unfrozen model, and for all of it once half is frozen.
TEST_F(PredictedArms, WhoseModelFitsNoDeviceSaySoAndElasticOnesWin) {
  cluster =
      make_uniform_cluster(2, Bytes{13'500}, {microseconds{2}, BytesPerSecond{1'000'000'000}});
  question.rules.search.micro_batch_sizes = {1, 2};
  question.forecast = {{0, 8, mask_of("1111")}, {8, 1200, mask_of("0001")}};
  const PredictedAblation ablation = predict();
  for (const Arm arm : {Arm::kOneDevice, Arm::kDataParallel}) {
    EXPECT_FALSE(ablation.run_of(arm).fits());
    EXPECT_NE(ablation.run_of(arm).reason.find("no plan is feasible"), std::string::npos);
  }
  const auto total = [&](Arm arm) {
    EXPECT_TRUE(ablation.run_of(arm).fits()) << ablation.run_of(arm).reason;
    return ablation.run_of(arm).total();
  };
  EXPECT_EQ(count_replicas(ablation.run_of(Arm::kUnfrozen).walk[0].plan), 1);
  EXPECT_LT(total(Arm::kFreezeOnly), total(Arm::kUnfrozen));
  EXPECT_LT(total(Arm::kAutoPipe), total(Arm::kFreezeOnly));
  EXPECT_LT(total(Arm::kAutoPipeReplicas), total(Arm::kAutoPipe));
  EXPECT_LT(total(Arm::kAll), total(Arm::kAutoPipeReplicas));
  EXPECT_TRUE(is_fastest(ablation, ablation.run_of(Arm::kAll)));
  const PredictedRun& pipe = ablation.run_of(Arm::kAutoPipe);
  for (const HeldSegment& held : pipe.walk) EXPECT_EQ(count_replicas(held.plan), 1);
  EXPECT_EQ(count_replicas(ablation.run_of(Arm::kAll).walk[1].plan), 2);
  for (const PredictedRun& run : ablation.runs) {
    if (run.fits() && !facts_of(run.arm).is_control) {
      EXPECT_GE(run.total(), ablation.compute_limit) << facts_of(run.arm).name;
    }
  }
}

TEST_F(PredictedArms, HaveALimitByComputeThatFourDevicesQuarter) {
  const SearchOptions& search = question.rules.search;
  const Duration one = bound_training({profile, cluster}, search, question.forecast, false);
  EXPECT_EQ(one, microseconds{8 * 8800 + 12 * 5600});
  const Cluster four = make_uniform_cluster(4, Bytes{100'000}, kMemoryLink);
  SearchOptions small = search;
  small.micro_batch_sizes = {8, 1};
  // With micro-batches of 8 samples one of them has to go all the way; with 1 sample a quarter.
  const Duration quarter = bound_training({profile, four}, small, question.forecast, false);
  EXPECT_EQ(quarter, one / 4);
  EXPECT_GT(bound_training({profile, four}, search, question.forecast, false), quarter);
}

TEST_F(PredictedArms, TakeNoLessThanTheLimitByComputeWhateverIsAsked) {
  int with_interior_mask = 0;
  for (int draw = 0; draw < draws(12); ++draw) {
    SCOPED_TRACE("seed " + std::to_string(draw));
    std::mt19937_64 random(static_cast<std::uint64_t>(draw));
    const auto below = [&](int end) {
      return static_cast<int>(random() % static_cast<unsigned>(end));
    };
    const int layers = 3 + below(4);
    profile = make_chain(layers, microseconds{50 + below(100)}, microseconds{50 + below(100)},
                         microseconds{50 + below(100)});
    cluster = make_uniform_cluster(1 + below(3), Bytes{1'000'000}, kMemoryLink);
    for (Device& device : cluster.devices) device.time_ppm = 700'000 + 100'000 * below(6);
    question.forecast = {{0, 20, FreezeMask::all_active(layers)}};
    for (int k = 0; k < 2; ++k) {
      ForecastSegment next{20 * (k + 1), 20, FreezeMask::all_active(layers)};
      for (int block = 0; block + 1 < layers; ++block) {
        next.mask.set_active(BlockId{block}, below(2) == 0);
      }
      if (next.mask == question.forecast.back().mask) continue;
      with_interior_mask += next.mask.is_active(BlockId{0}) && next.mask.frozen_count() > 0 ? 1 : 0;
      question.forecast.push_back(next);
    }
    question.rules.search.micro_batch_sizes = {1, 2, 4};
    const PredictedAblation ablation = predict();
    for (const PredictedRun& run : ablation.runs) {
      const ArmFacts& facts = facts_of(run.arm);
      if (facts.is_control || run.arm == Arm::kPipeTransformer) continue;
      ASSERT_TRUE(run.fits()) << run.reason;
      ASSERT_GE(run.total(), ablation.compute_limit) << facts.name;
      ASSERT_EQ(run.total(),
                run.times.parts.steps + run.times.parts.filling + run.times.parts.transitions);
      const auto devices = static_cast<std::int64_t>(cluster.devices.size());
      ASSERT_LE(run.times.held_device_time, run.total() * devices);
      ASSERT_GE(run.times.held_device_time, run.total());
    }
  }
  EXPECT_GE(with_interior_mask, 1);
}

// A recorded run may begin frozen: then arms that may take any plan need none that fits unfrozen.
TEST_F(PredictedArms, ThatAddReplicasNeedNoPlanForTheUnfrozenModel) {
  cluster = make_uniform_cluster(1, Bytes{13'500}, kMemoryLink);
  question.rules.search.micro_batch_sizes = {1};
  question.forecast = {{0, 20, mask_of("0001")}};
  const PredictedAblation ablation = predict();
  EXPECT_FALSE(ablation.run_of(Arm::kUnfrozen).fits());
  EXPECT_FALSE(ablation.run_of(Arm::kFreezeOnly).fits());
  EXPECT_FALSE(ablation.run_of(Arm::kShorter).fits());
  EXPECT_TRUE(ablation.run_of(Arm::kAll).fits());
  EXPECT_TRUE(ablation.run_of(Arm::kPipeTransformer).fits())
      << ablation.run_of(Arm::kPipeTransformer).reason;
  EXPECT_FALSE(find_speed(ablation, ablation.run_of(Arm::kAll)).has_value());
}

}  // namespace
}  // namespace frazil
