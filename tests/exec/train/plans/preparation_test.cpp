#include "exec/train/plans/preparation.h"

#include <gtest/gtest.h>

#include <chrono>
#include <numeric>
#include <thread>

#include "planner/what_if/plan_changes.h"
#include "profiles/error.h"
#include "tests/exec/support/tiny_run.h"

namespace frazil {
namespace {

constexpr Bytes kElasticLimit{600'000};  // half the model, and all of it once blocks are frozen

TrainOptions elastic_options(Bytes limit = kElasticLimit) {
  TrainOptions options;
  options.config = tiny_config();
  options.config.cache.kind = CacheConfig::Kind::kOn;
  options.profile = tiny_profile(options.config);
  options.cluster = tiny_cluster(limit);
  return options;
}

FreezeMask mask(const char* bits) { return FreezeMask::parse(bits, "test", 1); }

const std::vector<const char*> kMasks = {"00111", "00011", "00001", "01111"};

template <class Condition>
bool comes_true(const Condition& condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

TEST(Replanner, AnswersAheadWhatItWouldHaveAnswered) {
  const TrainOptions options = elastic_options();
  for (const char* bits : kMasks) {
    SCOPED_TRACE(bits);
    Replanner alone(options, kTinyShape, kTinySamples);
    Replanner ahead(options, kTinyShape, kTinySamples);
    (void)alone.go_on(mask("11111"), 0);
    (void)ahead.go_on(mask("11111"), 0);
    ahead.expect(mask(bits));
    ASSERT_TRUE(comes_true([&] { return ahead.find_expected(mask(bits)).has_value(); }));
    ahead.set_overhead({.plan = std::chrono::milliseconds(1)});
    alone.set_overhead({.plan = std::chrono::milliseconds(1)});
    (void)ahead.take_time();
    (void)alone.take_time();
    const Plan before = ahead.go_on(mask("11111"), 0);
    EXPECT_EQ(ahead.go_on(mask(bits), 0), alone.go_on(mask(bits), 0));
    EXPECT_EQ(ahead.find_uncached(), alone.find_uncached());
    EXPECT_EQ(ahead.predict_times(before).plan, Duration{0}) << "nothing was asked";
    EXPECT_GE(alone.predict_times(before).plan, std::chrono::milliseconds(1));
  }
}

TEST(Replanner, AnswersTheSameWhateverWasExpectedAndHoweverFarThatIs) {
  const TrainOptions options = elastic_options();
  for (const char* expected : kMasks) {
    for (const char* asked : kMasks) {
      SCOPED_TRACE(std::string(expected) + " " + asked);
      Replanner alone(options, kTinyShape, kTinySamples);
      Replanner ahead(options, kTinyShape, kTinySamples);
      (void)alone.go_on(mask("11111"), 0);
      (void)ahead.go_on(mask("11111"), 0);
      ahead.expect(mask(expected));
      ahead.expect(mask(asked));
      EXPECT_TRUE(ahead.has_room(mask(asked)));
      EXPECT_EQ(ahead.go_on(mask(asked), 0), alone.go_on(mask(asked), 0));
      ahead.expect(mask(expected));
      EXPECT_EQ(ahead.find_uncached(), alone.find_uncached());
    }
  }
}

// A transition that brings a cache costs what filling the cache takes: an epoch of steps for each
// variant, and no more steps than are left.
TEST(Replanner, ChargesTheStepsThatFillACacheForEachVariant) {
  TrainOptions options = elastic_options();
  const auto cost = [&](Step epoch, Step left) {
    Replanner replanner(options, kTinyShape, kTinySamples);
    (void)replanner.go_on(mask("11111"), 0);
    return replanner.predict(mask("00011"), epoch, left).cost;
  };
  const Duration moving = cost(0, 100);
  const Duration one_step = cost(1, 100) - moving;
  EXPECT_GT(one_step, Duration{0});
  EXPECT_EQ(cost(6, 100), moving + 6 * one_step);
  EXPECT_EQ(cost(6, 4), moving + 4 * one_step);
  options.config.augmentation = {
      .kind = AugmentationConfig::Kind::kShift, .pixels = 1, .variants = 3};
  EXPECT_EQ(cost(6, 100), moving + 18 * one_step);
  EXPECT_EQ(cost(6, 10), moving + 10 * one_step);
}

// A growing batch makes the steps of two plans differ in size. All is then counted by the
// configured batch, of which an epoch has as many under every plan.
TEST(Replanner, CountsWhatASwitchBringsByTheConfiguredBatch) {
  TrainOptions options = elastic_options();
  options.config.cache = {};
  options.config.batch_growth = BatchGrowth::kWithPipelines;
  Replanner replanner(options, kTinyShape, kTinySamples);
  const Plan first = replanner.go_on(mask("11111"), 0);
  const PredictedTransition forth = replanner.predict(mask("00001"), 6, 100);
  const Plan grown = replanner.go_on(mask("00001"), 0);
  ASSERT_EQ(grown.batch_size, 2 * first.batch_size);
  const auto step = [&](const Plan& plan) {
    return simulate_plan(plan, {options.profile, options.cluster}).makespan;
  };
  EXPECT_EQ(forth.saved_per_step, step(first) - step(grown) / 2);
  const PredictedTransition back = replanner.predict(mask("11111"), 6, 100);
  EXPECT_EQ(back.saved_per_step, step(grown) / 2 - step(first));
}

TEST(Replanner, TellsWhoAsksThatNothingFitsThoughItWasExpected) {
  TrainOptions options = elastic_options(Bytes{1'000});
  Replanner replanner(options, kTinyShape, kTinySamples);
  replanner.expect(mask("00111"));
  EXPECT_THROW((void)replanner.go_on(mask("00111"), 0), InfeasibleError);
  EXPECT_EQ(replanner.find_expected(mask("00111")), std::nullopt);
}

TEST(Replanner, AsksNothingAheadForARunThatKeepsItsPlan) {
  TrainOptions options = elastic_options();
  options.elastic = false;
  Replanner replanner(options, kTinyShape, kTinySamples);
  (void)replanner.go_on(mask("00011"), 0);
  replanner.expect(mask("00001"));
  EXPECT_EQ(replanner.find_expected(mask("00001")), std::nullopt);
}

TEST(Preparation, ReservesTheMemoryThatTheTransitionCopiesInto) {
  const TrainOptions options = elastic_options();
  Replanner replanner(options, kTinyShape, kTinySamples);
  frazil::Run run(make_model(options.config.model), options.config.optimizer, 7, 2);
  Preparation preparation(replanner, run);
  const Dataset data = load_data(options.config);
  const std::vector<std::int64_t> order = epoch_order(data.train.count(), 1, 0);
  const auto train = [&](Step step) {
    (void)run.step(step, 1e-3, gather_micro_batches(data.train, order, 0, 8, 4));
  };
  run.transition_to(
      with_lists(replanner.go_on(mask("11111"), 0), {options.profile, options.cluster}));
  train(0);
  preparation.expect(mask("00011"));
  ASSERT_TRUE(comes_true([&] {
    preparation.go_on();
    return replanner.find_expected(mask("00011")).has_value();
  }));
  preparation.go_on();
  preparation.go_on();
  const Plan next =
      with_lists(*replanner.find_expected(mask("00011")), {options.profile, options.cluster});
  const std::vector<Bytes> blocks = run.copied_blocks(next);
  const Bytes all = std::accumulate(blocks.begin(), blocks.end(), Bytes{});
  ASSERT_GT(all.count, 0) << "a replica comes";
  preparation.end();
  const StateMemory::Usage before = run.state_memory().usage();
  EXPECT_EQ(before.kept, all);
  const TransitionReport report = run.transition_to(next);
  EXPECT_GT(report.move.copied.count, 0);
  const StateMemory::Usage after = run.state_memory().usage();
  EXPECT_EQ(after.held + after.kept, before.held + before.kept) << "nothing new was needed";
  train(1);
}

TEST(Preparation, EndsWithTheRunWhateverGoesOn) {
  const TrainOptions options = elastic_options();
  Replanner replanner(options, kTinyShape, kTinySamples);
  frazil::Run run(make_model(options.config.model), options.config.optimizer, 7, 2);
  Preparation preparation(replanner, run);
  run.transition_to(
      with_lists(replanner.go_on(mask("11111"), 0), {options.profile, options.cluster}));
  for (const char* bits : kMasks) {
    preparation.expect(mask(bits));
    preparation.go_on();
  }
}

}  // namespace
}  // namespace frazil
