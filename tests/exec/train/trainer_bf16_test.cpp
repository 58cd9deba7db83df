// Whole trainings in bf16 beside the same in fp32.

#include <gtest/gtest.h>

#include "exec/train/train_files.h"
#include "planner/prediction/plan_notation.h"
#include "profiles/error.h"
#include "tests/exec/support/tiny_run.h"

namespace frazil {
namespace {

TrainOptions narrow_options(RunConfig config, Precision precision) {
  TrainOptions options;
  config.reduction = ReductionMode::kFast;
  config.precision = precision;
  options.config = config;
  options.profile = tiny_profile(options.config);
  options.cluster = tiny_cluster(kAmpleMemory);
  options.command = "frazil train";
  return options;
}

RunConfig digits_config() {
  RunConfig config = read_run_config(std::string(FRAZIL_SOURCE_FOLDER) + "/exec/runs/digits.json");
  config.epochs = 4;
  config.freeze = {};
  return config;
}

TEST(Bf16Training, OfTheDigitsEndsWithinAPercentOfFp32) {
  const RunConfig config = digits_config();
  const Dataset data = load_data(config);
  const TrainResult wide = train(narrow_options(config, Precision::kFp32), data);
  const TrainResult narrow = train(narrow_options(config, Precision::kBf16), data);
  EXPECT_NE(narrow.weight_hash, wide.weight_hash);
  EXPECT_NEAR(narrow.loss, wide.loss, 0.01 * wide.loss);
  EXPECT_GT(narrow.accuracy, 0.9);
}

// The second epoch keeps what the third finds; the fourth freezes more.
RunConfig cached_config() {
  RunConfig config = tiny_config();
  config.epochs = 4;
  config.freeze.policy =
      AlphaFreeze{.alpha = 0.5, .start = 1, .interval = 2, .unit = PaceUnit::kEpochs};
  config.cache.kind = CacheConfig::Kind::kOn;
  config.cache.admission = CacheConfig::Admission::kAlways;
  return config;
}

TEST(Bf16Training, GivesTheSameBitsTwiceWhilePlansChange) {
  const TrainOptions options = narrow_options(cached_config(), Precision::kBf16);
  const TrainResult first = train(options, load_data(options.config));
  const TrainResult second = train(options, load_data(options.config));
  EXPECT_EQ(first.weight_hash, second.weight_hash);
  EXPECT_EQ(first.loss, second.loss);
  EXPECT_GT(first.phases.size(), 2U);
  ASSERT_TRUE(first.cache.has_value());
  EXPECT_GT(first.cache->counts.found, 0);
}

TEST(Bf16Training, FindsInTheCacheWhatThePrefixPutsOut) {
  RunConfig config = cached_config();
  config.cache.check = true;  // ends the run if what is cached has other bits
  const TrainOptions options = narrow_options(config, Precision::kBf16);
  const TrainResult result = train(options, load_data(options.config));
  ASSERT_TRUE(result.cache.has_value());
  EXPECT_GT(result.cache->counts.found, 0);
}

}  // namespace
}  // namespace frazil
