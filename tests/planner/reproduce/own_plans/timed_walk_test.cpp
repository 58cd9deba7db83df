// Tests the parts of a training's time against sums by hand.

#include "planner/reproduce/own_plans/timed_walk.h"

#include <gtest/gtest.h>

#include "planner/prediction/simulate_plan.h"
#include "planner/reproduce/elastic_run.h"
#include "planner/reproduce/rtx5000.h"
#include "profiles/error.h"
#include "tests/support/sample_models.h"

namespace frazil {
namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;

// Eight equal layers on 16 devices; a sample of each micro-batch, and two steps in an epoch.
OwnTraining small_training() {
  return {.name = "chain",
          .profile = make_chain(8, microseconds{100}, microseconds{100}, microseconds{100}),
          .batch_size = 16,
          .micro_batch_sizes = {1},
          .samples = 32,
          .frozen = {0, 3, 3},
          .device_memory = kRtx5000Memory};
}

// A pipeline of `length` devices beside another until all 16 are in use.
Plan plan_of(int length) {
  Plan plan;
  plan.batch_size = 16;
  plan.micro_batch_size = 1;
  plan.mask = FreezeMask::all_active(8);
  plan.schedule = NamedSchedule{};
  plan.reduction = ReductionMode::kFast;
  std::vector<LayerId> cuts;
  cuts.reserve(static_cast<std::size_t>(length));
  for (int s = 1; s < length; ++s) cuts.push_back(LayerId{s * 8 / length});
  for (int first = 0; first < 16; first += length) {
    std::vector<DeviceId> devices;
    devices.reserve(static_cast<std::size_t>(length));
    for (int d = 0; d < length; ++d) devices.push_back(DeviceId{first + d});
    plan.pipelines.push_back(
        make_pipeline(8, cuts, devices, {MicroBatchId{first}, MicroBatchId{first + length - 1}}));
  }
  return plan;
}

FreezeMask half_frozen() { return FreezeMask::frozen_prefix(8, BlockId{3}); }

TEST(TimedWalk, ComputeIsWhatTheLayersOfADeviceTake) {
  const OwnTraining training = small_training();
  const auto compute = [&](const FreezeMask& mask, int depth) {
    return time_step(training, plan_of(1), mask, depth).compute;
  };
  // 8 forwards, 8 weight gradients, and no input gradient of the first layer.
  EXPECT_EQ(compute(FreezeMask::all_active(8), 0), microseconds{2300});
  // Four layers run forward alone; layer 4 has no input gradient.
  EXPECT_EQ(compute(half_frozen(), 0), microseconds{1500});
  EXPECT_EQ(compute(half_frozen(), 4), microseconds{1100});
  // Two devices share the layers; the second has four with I and W, two micro-batches of them.
  EXPECT_EQ(time_step(training, plan_of(2), FreezeMask::all_active(8), 0).compute,
            microseconds{2 * 1200});
}

TEST(TimedWalk, PartsOfAStepAddUpToIt) {
  const OwnTraining training = small_training();
  for (const int length : {1, 2, 4, 8}) {
    // As many rings as a pipeline has devices share a host's adapter.
    const Cluster cluster = make_own_cluster(training, length);
    const SearchOptions asked = search_options(training);
    const Plan plan = plan_of(length);
    const Duration makespan =
        simulate_plan(plan, {training.profile, cluster}, {.clip = true, .overlap = asked.overlap})
            .makespan;
    EXPECT_EQ(time_step(training, plan, plan.mask, 0).total(), makespan) << length;
  }
}

TEST(TimedWalk, FeaturesPassThroughTheMemoryOfBothHosts) {
  OwnTraining training = small_training();
  EXPECT_EQ(time_features(training, plan_of(1), {}), kNoTime);
  // 16 samples of 10 bytes at 2 x 8 GB/s.
  EXPECT_EQ(time_features(training, plan_of(1), {.depth = 4}), nanoseconds{10});
  training.cache_of_host = kCacheOfAHost;
  EXPECT_EQ(time_features(training, plan_of(1), {.depth = 4}), nanoseconds{37})
      << "160 / 4.4, rounded up";
}

TEST(TimedWalk, FillsForAnEpochAndThenReads) {
  OwnTraining training = small_training();
  training.cache_of_host = BytesPerSecond{8'000};  // so slow that reading takes 10 ms a step
  const auto segments = list_segments(training);
  ASSERT_EQ(segments.size(), 2U);
  ASSERT_EQ(segments[1].steps, 4);
  const HeldCache filling{.features = {.depth = 4}, .source = {}, .left = 2};
  const Plan plan = plan_of(1);
  const TimeParts parts =
      time_walk(training, {{plan, segments[0], {}}, {plan, segments[1], filling}});
  EXPECT_EQ(parts.compute, microseconds{2 * 2300 + 2 * 1500 + 2 * 1100});
  EXPECT_EQ(parts.writing, std::chrono::milliseconds{2 * 10});
  const Duration reads = time_step(training, plan, half_frozen(), 4).total();
  EXPECT_EQ(parts.reading, (std::chrono::milliseconds{10} - reads) * 2) << "beside the step";
  EXPECT_EQ(parts.transitions, kNoTime);
  EXPECT_EQ(parts.start, start_time());
}

TEST(TimedWalk, ATransitionTakesThePublishedGapAndTheMoves) {
  const OwnTraining training = small_training();
  const auto segments = list_segments(training);
  const TimeParts parts =
      time_walk(training, {{plan_of(2), segments[0], {}}, {plan_of(1), segments[1], {}}});
  // Each device gets four layers of 3000 bytes from its neighbour, a message each, over PCIe.
  const Duration message = Bytes{3000} / BytesPerSecond{15'754'000'000};
  EXPECT_EQ(parts.transitions, halving_time(2) + message * 4);
}

TEST(TimedWalk, RefusesAPlanThatDoesNotFit) {
  OwnTraining training = small_training();
  training.device_memory = kRtx5000Context + Bytes{10'000};
  EXPECT_THROW(time_step(training, plan_of(1), FreezeMask::all_active(8), 0), InfeasibleError);
}

}  // namespace
}  // namespace frazil
