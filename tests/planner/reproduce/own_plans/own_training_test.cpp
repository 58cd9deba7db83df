// Tests the trainings of which Frazil makes its own plans.

#include "planner/reproduce/own_plans/own_training.h"

#include <gtest/gtest.h>

#include "planner/reproduce/pipetransformer_runs.h"
#include "planner/reproduce/rtx5000.h"

namespace frazil {
namespace {

OwnTraining vision_training(Bytes device_memory) {
  return {.name = "ViT-B/16",
          .profile = make_rtx5000_vision(vit_b16(1000)),
          .batch_size = 800,
          .micro_batch_sizes = {50},
          .samples = 1'600,
          .frozen = freeze_schedule(kVitLayers, kPublishedAlpha, kPublishedEpochs),
          .device_memory = device_memory};
}

TEST(OwnTraining, HasASegmentForEachMask) {
  // L_f by epoch is 0 4 7 9 10 11 11 12 12 12, and an epoch has two steps.
  const std::vector<ForecastSegment> segments = list_segments(vision_training(kRtx5000Memory));
  std::vector<Step> begins;
  std::vector<Step> steps;
  std::vector<std::string> masks;
  for (const ForecastSegment& segment : segments) {
    begins.push_back(segment.step);
    steps.push_back(segment.steps);
    masks.push_back(segment.mask.text());
  }
  EXPECT_EQ(begins, (std::vector<Step>{0, 2, 4, 6, 8, 10, 14}));
  EXPECT_EQ(steps, (std::vector<Step>{2, 2, 2, 2, 2, 4, 6}));
  EXPECT_EQ(masks[1], "00000111111111");
  EXPECT_EQ(masks[6], "00000000000001");
}

TEST(OwnTraining, CountsTheSamplesThatADeviceHasRoomFor) {
  // The profile is made so that 63 samples fit 16 GB.
  EXPECT_EQ(count_fitting_samples(vision_training(kRtx5000Memory)), 63);
  // 86.6 M parameters, with gradients and momentum, are 1.04 GB; the context is 0.91 GB.
  EXPECT_EQ(count_fitting_samples(vision_training(Bytes{1'900'000'000})), 0);
}

TEST(OwnTraining, ItsCacheIsThatOfTwoHosts) {
  OwnTraining training = vision_training(kRtx5000Memory);
  EXPECT_EQ(make_own_store(training).memory.link.bandwidth, BytesPerSecond{16'000'000'000});
  training.cache_of_host = kCacheOfAHost;
  EXPECT_EQ(make_own_store(training).memory.link.bandwidth, BytesPerSecond{4'400'000'000});
  EXPECT_EQ(make_own_store(training).disk.limit, Bytes{});
  training.room_of_host = {.memory = Bytes{1000}, .disk = Bytes{3000}};
  const FeatureStore store = make_own_store(training);
  EXPECT_EQ(store.memory.limit, Bytes{2000});
  EXPECT_EQ(store.disk.limit, Bytes{6000});
  // Each host reads its half of the records from its own drive.
  EXPECT_EQ(store.disk.link, (Link{kDiskLink.latency / 2, BytesPerSecond{2'000'000'000}}));
}

}  // namespace
}  // namespace frazil
