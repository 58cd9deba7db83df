// Tests a frozen prefix whose output is read from a cache: it runs no forward, needs no less memory
// than it has to, and never reaches beyond the first stage.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "planner/lowering/footprint.h"
#include "planner/plan/activity.h"
#include "planner/prediction/bounds.h"
#include "planner/prediction/simulate_plan.h"
#include "profiles/error.h"
#include "tests/support/sample_models.h"

namespace frazil {
namespace {

using std::chrono::milliseconds;

constexpr int kLayers = 6;
constexpr int kMicroBatchesPerStep = 5;

// Makes layers of 3 ms F, 5 ms I and 7 ms W.
ModelProfile chain() {
  return make_chain(kLayers, milliseconds{3}, milliseconds{5}, milliseconds{7});
}

Plan make_plan(const std::string& mask, const std::vector<int>& cuts) {
  Plan plan;
  plan.batch_size = kMicroBatchesPerStep;
  plan.mask = FreezeMask::parse(mask, "test", 1);
  plan.cache_frozen_prefix = true;
  std::vector<LayerId> layers;
  std::vector<DeviceId> devices{DeviceId{0}};
  for (const int cut : cuts) {
    layers.emplace_back(cut);
    devices.emplace_back(static_cast<int>(devices.size()));
  }
  plan.pipelines = {make_pipeline(kLayers, layers, devices,
                                  {MicroBatchId{0}, MicroBatchId{kMicroBatchesPerStep - 1}})};
  plan.schedule = NamedSchedule{};
  return plan;
}

Cluster cluster_of(const Plan& plan) {
  const auto devices = static_cast<int>(plan.pipelines[0].stages.size());
  return make_uniform_cluster(devices, Bytes{1 << 30}, {milliseconds{0}, {}});
}

PlanSimulation simulated(const Plan& plan) {
  const ModelProfile profile = chain();
  const Cluster cluster = cluster_of(plan);
  return simulate_plan(plan, {profile, cluster});
}

TEST(CachedPrefix, IsTheLongestOneThatNothingTrains) {
  const std::vector<std::pair<std::string, int>> depths{
      {"111111", 0}, {"011111", 1}, {"000111", 3}, {"010011", 1}, {"000001", 5}, {"101111", 0}};
  for (const auto& [mask, depth] : depths) {
    EXPECT_EQ(find_activity(chain(), make_plan(mask, {})).cached, depth) << mask;
  }
  Plan plan = make_plan("000111", {});
  plan.cache_frozen_prefix = false;
  EXPECT_EQ(find_activity(chain(), plan).cached, 0);
}

TEST(CachedPrefix, EndsBeforeALossInIt) {
  ModelProfile profile = chain();
  profile.layers[1].has_loss = true;
  EXPECT_EQ(find_activity(profile, make_plan("000111", {})).cached, 1);
}

TEST(CachedPrefix, FillsTheFirstStageAtMost) {
  EXPECT_EQ(find_activity(chain(), make_plan("000111", {3})).cached, 3);
  try {
    (void)find_activity(chain(), make_plan("000011", {3}));
    ADD_FAILURE() << "nothing was thrown";
  } catch (const InfeasibleError& error) {
    EXPECT_STREQ(error.what(),
                 "the cached frozen prefix, layers 0-3, does not lie in the first stage of "
                 "pipeline 0 alone: stage 1 holds some of it");
  }
  EXPECT_THROW((void)simulated(make_plan("000011", {3})), InfeasibleError);
}

// A step on one device is the sum of its parts: F and W of each layer that trains, and I of all
// these but the first.
TEST(CachedPrefix, TakesItsForwardsFromTheStep) {
  for (int frozen = 1; frozen < kLayers; ++frozen) {
    const std::string mask = std::string(static_cast<std::size_t>(frozen), '0') +
                             std::string(static_cast<std::size_t>(kLayers - frozen), '1');
    const int active = kLayers - frozen;
    const Plan plan = make_plan(mask, {});
    const auto step = kMicroBatchesPerStep * (active * (3 + 5 + 7) - 5);
    EXPECT_EQ(simulated(plan).makespan, milliseconds{step}) << mask;
    Plan without = plan;
    without.cache_frozen_prefix = false;
    EXPECT_EQ(simulated(without).makespan, milliseconds{step + kMicroBatchesPerStep * frozen * 3})
        << mask;
    EXPECT_EQ(simulated(plan).memory[0].total, simulated(without).memory[0].total) << mask;
  }
}

TEST(CachedPrefix, OfAWholeStageLeavesItNothingToDo) {
  const PlanSimulation simulation = simulated(make_plan("000111", {3}));
  Duration busy{0};
  for (const Span& span : simulation.timeline.spans) {
    if (span.device == DeviceId{0}) busy += span.end - span.start;
  }
  EXPECT_EQ(busy, Duration{0});
  EXPECT_EQ(simulation.makespan, milliseconds{kMicroBatchesPerStep * (3 * (3 + 5 + 7) - 5)});
}

// A recomputing stage keeps until R what the first layer that trains reads, as if that came from
// another stage.
TEST(CachedPrefix, IsKeptByAStageThatRecomputes) {
  Plan plan = make_plan("000111", {});
  plan.pipelines[0].stages[0].memory = MemoryPolicy::kRecompute;
  plan.schedule = NamedSchedule{.kind = ScheduleKind::kGpipe};
  const auto input = [&](const Plan& of) {
    return find_footprint(of, PipelineId{0}, StageId{0}, chain(), find_activity(chain(), of))
        .input_per_micro_batch;
  };
  EXPECT_EQ(input(plan), Bytes{10});
  Plan without = plan;
  without.cache_frozen_prefix = false;
  EXPECT_EQ(input(without), Bytes{0}) << "it reads samples, which are there";
  // R runs the layers that F runs.
  EXPECT_EQ(simulated(plan).makespan,
            milliseconds{kMicroBatchesPerStep * (3 * (3 + 3 + 5 + 7) - 5)});
}

TEST(CachedPrefix, KeepsBoundsBelowWhatIsSimulated) {
  const ModelProfile profile = chain();
  for (const ScheduleKind kind : {ScheduleKind::kGpipe, ScheduleKind::kOneForwardOneBackward,
                                  ScheduleKind::kZbH1, ScheduleKind::kZb1p, ScheduleKind::kTwoBp}) {
    for (const char* mask : {"011111", "000111", "001011", "000011"}) {
      for (const std::vector<int>& cuts : std::vector<std::vector<int>>{{}, {4}, {4, 5}}) {
        Plan plan = make_plan(mask, cuts);
        plan.schedule = NamedSchedule{.kind = kind};
        const Cluster cluster = cluster_of(plan);
        const Duration makespan = simulate_plan(plan, {profile, cluster}).makespan;
        EXPECT_LE(find_bounds(plan, {profile, cluster}).makespan.time, makespan)
            << schedule_name(kind) << ", " << mask << ", " << cuts.size() + 1 << " stages";
        EXPECT_GE(find_bounds(plan, {profile, cluster}).makespan.time * 2, makespan);
      }
    }
  }
}

}  // namespace
}  // namespace frazil
