// A training whose configuration asks for a cache has the bits of one without, whatever happens to
// it.

#include <gtest/gtest.h>

#include <algorithm>

#include "exec/profile/verify.h"
#include "exec/train/trainer.h"
#include "profiles/error.h"
#include "tests/exec/disk/disk_model.h"
#include "tests/exec/support/tiny_run.h"
#include "tests/support/sanitizer.h"

namespace frazil {
namespace {

// The training has five epochs of six steps. L_f is 2 blocks from the second epoch on, and 3 from
// the third on, which is all but the head.
TrainOptions make_options(CacheConfig::Kind kind = CacheConfig::Kind::kOn) {
  TrainOptions options;
  options.config = tiny_config();
  options.config.epochs = 5;
  vit_of(options.config).dropout = 0.1;
  options.config.cache.kind = kind;
  options.profile = tiny_profile(options.config);
  options.cluster = tiny_cluster(Bytes{600'000});
  options.command = "frazil train";
  return options;
}

TrainOptions uncached() { return make_options(CacheConfig::Kind::kOff); }

TrainResult run(const TrainOptions& options,
                const std::function<void(const TrainProgress&)>& progress = {}) {
  return train(options, load_data(options.config), progress);
}

void expect_same_bits(const TrainResult& cached, const TrainResult& without) {
  EXPECT_EQ(cached.weight_hash, without.weight_hash);
  EXPECT_EQ(cached.loss, without.loss);
  EXPECT_EQ(cached.accuracy, without.accuracy);
}

TEST(CachedTraining, HasTheBitsOfOneWithoutACacheAndSaysWhatItDid) {
  const TrainResult without = run(uncached());
  EXPECT_FALSE(without.cache.has_value());
  std::vector<std::string> events;
  const TrainResult cached = run(make_options(), [&](const TrainProgress& now) {
    if (!now.event.empty()) events.push_back(now.event);
  });
  expect_same_bits(cached, without);
  ASSERT_EQ(cached.phases.size(), 3U);
  EXPECT_FALSE(cached.phases[0].plan.cache_frozen_prefix);
  EXPECT_TRUE(cached.phases[1].plan.cache_frozen_prefix) << summarize(cached.phases[1].plan);
  EXPECT_TRUE(cached.phases[2].plan.cache_frozen_prefix) << summarize(cached.phases[2].plan);
  EXPECT_LT(cached.phases[2].predicted_step, without.phases[2].predicted_step);
  ASSERT_TRUE(cached.cache.has_value());
  EXPECT_EQ(cached.cache->depth, 7);
  EXPECT_EQ(cached.cache->bytes_per_sample, Bytes{17 * 32 * 4});
  const FeatureCounts& counts = cached.cache->counts;
  EXPECT_EQ(counts.missed, kTinySamples);
  EXPECT_EQ(counts.found_before, kTinySamples);
  EXPECT_EQ(counts.found, 2 * kTinySamples);
  EXPECT_EQ(counts.stored, 2 * kTinySamples);
  EXPECT_EQ(events.back(),
            "cache: layers 0-6 at the end, 2176 bytes a sample in float32; samples: 96 stored, 96 "
            "found, 48 at the depth before, 48 missed; of 48 micro-batches 24 ran no frozen layer");
  EXPECT_EQ(cached.cache->in_memory, Bytes{kTinySamples * 17 * 32 * 4});
  EXPECT_EQ(cached.cache->on_disk, Bytes{});
}

TEST(CachedTraining, WithRoomForSomeSamplesHasTheSameBitsAndWarnsOnce) {
  TrainOptions options = make_options();
  options.config.cache.memory = Bytes{30 * 17 * 32 * 4};
  std::vector<std::string> warnings;
  const TrainResult cached = run(options, [&](const TrainProgress& now) {
    if (now.is_warning) warnings.push_back(now.event);
  });
  expect_same_bits(cached, run(uncached()));
  EXPECT_EQ(warnings, (std::vector<std::string>{warn_of_room(30, kTinySamples)}));
  const FeatureCounts& counts = cached.cache->counts;
  EXPECT_EQ(counts.found_before, 30);
  EXPECT_EQ(counts.found, 2 * 30);
  EXPECT_EQ(counts.missed, kTinySamples + 3 * (kTinySamples - 30));
  EXPECT_EQ(cached.cache->in_memory, options.config.cache.memory);
}

TEST(CachedTraining, KeepsItsBitsUnderAKeptPlanThatAllowsNoCache) {
  TrainOptions options = make_options();
  options.elastic = false;
  std::vector<std::string> events;
  const TrainResult cached = run(options, [&](const TrainProgress& now) {
    if (!now.event.empty()) events.push_back(now.event);
  });
  expect_same_bits(cached, run(uncached()));
  EXPECT_FALSE(cached.phases[2].plan.cache_frozen_prefix) << "two stages of about four layers";
  EXPECT_TRUE(std::any_of(events.begin(), events.end(), [](const std::string& event) {
    return event.find(
               "; nothing is cached: the cached frozen prefix, layers 0-6, does not lie in "
               "the first stage") != std::string::npos;
  }));
}

TEST(CachedTraining, ThatChecksRunsThrough) {
  TrainOptions options = make_options();
  options.config.cache.check = true;
  const TrainResult checked = run(options);
  expect_same_bits(checked, run(uncached()));
  EXPECT_EQ(checked.cache->counts.found, 2 * kTinySamples);
}

TEST(CachedTraining, InBfloat16SaysThatItRounds) {
  TrainOptions options = make_options();
  options.config.cache.precision = FeaturePrecision::kBfloat16;
  std::vector<std::string> events;
  const TrainResult rounded = run(options, [&](const TrainProgress& now) {
    if (!now.event.empty()) events.push_back(now.event);
  });
  EXPECT_NE(rounded.weight_hash, run(uncached()).weight_hash);
  EXPECT_EQ(rounded.cache->bytes_per_sample, Bytes{17 * 32 * 2});
  EXPECT_TRUE(std::any_of(events.begin(), events.end(), [](const std::string& event) {
    return event.ends_with(
        "what layers 0-4 put out is cached, 1088 bytes a sample in bfloat16, which rounds: losses "
        "are not those of a run without a cache");
  }));
}

// The run ends in the middle of each epoch with a cached prefix, and where one prefix gives way to
// the next.
TEST(CachedTraining, GoesOnFromACheckpointWithTheSameBits) {
  const TrainResult whole = run(uncached());
  for (const Step end : {7, 9, 12, 14, 20, 27}) {
    if (kThreadsAreWatched && end != 9 && end != 14) continue;
    SCOPED_TRACE("ended after step " + std::to_string(end));
    DiskModel disk;
    TrainOptions options = make_options();
    options.durable = DurableOptions{
        .folder = "/run", .every = 4, .keep = 2, .resume = false, .journal = {}, .files = {}};
    options.durable->files = disk.files();
    Step done = 0;
    options.stop = [&] { return ++done == end; };
    const TrainResult stopped = run(options);
    ASSERT_EQ(stopped.stopped_at, end);
    options.stop = {};
    options.durable->resume = true;
    const TrainResult resumed = run(options);
    EXPECT_EQ(resumed.first_step, end);
    // A resumed run begins with an empty cache, so with no more than an epoch left nothing would be
    // read.
    EXPECT_EQ(resumed.phases.back().plan.cache_frozen_prefix, 30 - end > 6);
    expect_same_bits(resumed, whole);
    // The run is the same with or without a cache. Its last checkpoint leaves nothing to do.
    EXPECT_EQ(disk.files().unlink("/run/step-000000000030.safetensors"), 0);
    options.config.cache = {};
    expect_same_bits(run(options), whole);
  }
}

std::string refusal(const std::function<void()>& act) {
  try {
    act();
  } catch (const InputError& error) {
    return error.what();
  } catch (const InfeasibleError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(CachedTraining, IsRefusedWhereItCannotBe) {
  TrainOptions rounds = make_options();
  rounds.config.cache.precision = FeaturePrecision::kBfloat16;
  DiskModel disk;
  rounds.durable = DurableOptions{
      .folder = "/run", .every = 4, .keep = 2, .resume = false, .journal = {}, .files = {}};
  rounds.durable->files = disk.files();
  EXPECT_EQ(
      refusal([&] { (void)run(rounds); }),
      "run configuration: found a cache in bfloat16, which rounds, expected one in float32 where "
      "the run keeps checkpoints");

  TrainOptions nowhere = make_options();
  nowhere.config.cache.disk = Bytes{1 << 20};
  nowhere.config.cache.folder = "/nowhere/at/all";
  EXPECT_EQ(
      refusal([&] { (void)run(nowhere); }),
      "run configuration: found a cache in /nowhere/at/all, no folder, expected a folder that "
      "is there");

  TrainOptions given = uncached();
  given.plan = run(uncached()).phases[0].plan;
  given.plan->cache_frozen_prefix = true;
  given.plan_file = "plan.json";
  EXPECT_EQ(refusal([&] { (void)run(given); }),
            "plan.json: found a plan with a cached frozen prefix, expected a run with a cache");

  TrainOptions gone = make_options();
  gone.config.cache.disk = Bytes{1 << 20};
  gone.config.cache.folder = "/nowhere/cache";
  EXPECT_NE(refusal([&] { (void)run(gone); }).find("/nowhere/cache"), std::string::npos);

  VerifyOptions verified;
  verified.plan.cache_frozen_prefix = true;
  EXPECT_EQ(refusal([&] { (void)verify(verified, Dataset{}); }),
            "verify times every layer, so it takes no plan with a cached prefix");
}

}  // namespace
}  // namespace frazil
