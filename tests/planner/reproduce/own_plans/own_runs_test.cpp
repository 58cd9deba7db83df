// Tests Frazil's own runs of published trainings against the trajectory that they follow, and
// against each other.

#include "planner/reproduce/own_plans/own_runs.h"

#include <gtest/gtest.h>

#include "planner/reproduce/elastic_run.h"
#include "planner/reproduce/pipetransformer_runs.h"
#include "planner/reproduce/rtx5000.h"

namespace frazil {
namespace {

OwnTraining vision_training() {
  const Training theirs = imagenet_training();
  return {.name = "ViT-B/16",
          .profile = theirs.profile,
          .batch_size = 800,
          .micro_batch_sizes = {25, 50},
          .samples = theirs.samples,
          .frozen = freeze_schedule(kVitLayers, kPublishedAlpha, kPublishedEpochs),
          .device_memory = kRtx5000Memory};
}

OwnTraining squad_on(Bytes device_memory) {
  const Training theirs = squad_training();
  return {.name = "BERT-large",
          .profile = theirs.profile,
          .batch_size = 128,
          .micro_batch_sizes = {4, 8},
          .samples = theirs.samples,
          .frozen = freeze_schedule(24, kPublishedAlpha, kSquadEpochs),
          .device_memory = device_memory};
}

TEST(OwnRuns, TakeWhatTheirTrajectoryTakesWherePipelinesAreOneDeviceLong) {
  const OwnTraining training = vision_training();
  const Cluster cluster = make_own_cluster(training, 1);
  const PlannedTrajectory planned =
      plan_trajectory({training.profile, cluster}, list_segments(training),
                      {.search = search_options(training),
                       .overhead = own_overhead(),
                       .store = make_own_store(training)});
  const OwnRuns runs = plan_own_runs(training);
  EXPECT_EQ(runs.elastic.parts.total(), planned.best.total + start_time());
  // The fastest schedule cuts the model in two chunks on its one device, which cannot cache a
  // prefix that reaches into the second: the run leaves it for one that does not.
  EXPECT_EQ(runs.elastic.transitions, 1);
  EXPECT_TRUE(runs.elastic.plans.starts_with("1 x 16 ")) << runs.elastic.plans;
  EXPECT_LT(runs.elastic.parts.total(), runs.fixed.parts.total());
  EXPECT_TRUE(runs.unfrozen.plans.starts_with("1 x 16 ")) << runs.unfrozen.plans;
}

TEST(OwnRuns, BeatFixedPlansWhereOneDeviceHasLittleRoom) {
  const OwnRuns runs = plan_own_runs(squad_on(Bytes{std::int64_t{11} << 30}));
  // One device has room for micro-batches of 4, and such a plan caches everything; pipelines
  // take 8.
  EXPECT_TRUE(runs.fixed.plans.starts_with("1 x 16 ")) << runs.fixed.plans;
  EXPECT_LT(runs.elastic.parts.total(), runs.fixed.parts.total());
  EXPECT_LT(runs.fixed.parts.total(), runs.unfrozen.parts.total());
  EXPECT_GT(runs.elastic.transitions, 0);
  EXPECT_GE(runs.elastic.parts.transitions, halving_time(2) * runs.elastic.transitions);
}

TEST(OwnRuns, HostsWithoutRoomInMemoryCacheOnDiskOrNothing) {
  OwnTraining training = vision_training();
  const Duration in_memory = plan_own_runs(training).elastic.parts.total();
  // The features take 387.6 GB a host: one that lacks a gigabyte of that caches none of them.
  training.room_of_host = {.memory = Bytes{387'000'000'000}, .disk = {}};
  const OwnRun uncached = plan_own_runs(training).elastic;
  EXPECT_EQ(uncached.parts.reading + uncached.parts.writing, kNoTime);
  training.room_of_host.disk = Bytes{388'000'000'000};
  const OwnRun on_disk = plan_own_runs(training).elastic;
  EXPECT_GT(on_disk.parts.writing, kNoTime);
  EXPECT_LT(in_memory, on_disk.parts.total());
  EXPECT_LT(on_disk.parts.total(), uncached.parts.total());
  const Cluster cluster = make_own_cluster(training, 1);
  const PlannedTrajectory planned =
      plan_trajectory({training.profile, cluster}, list_segments(training),
                      {.search = search_options(training),
                       .overhead = own_overhead(),
                       .store = make_own_store(training)});
  EXPECT_EQ(on_disk.parts.total(), planned.best.total + start_time());
}

TEST(OwnRuns, ASlowerCacheTakesLonger) {
  OwnTraining training = vision_training();
  const Duration fast = plan_own_runs(training).elastic.parts.total();
  training.cache_of_host = kCacheOfAHost;
  EXPECT_GT(plan_own_runs(training).elastic.parts.total(), fast);
}

}  // namespace
}  // namespace frazil
