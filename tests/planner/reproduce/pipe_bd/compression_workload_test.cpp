#include "planner/reproduce/pipe_bd/compression_workload.h"

#include <gtest/gtest.h>

#include <numeric>

namespace frazil {
namespace {

Bytes sum_of(const BlockwiseTimes& times, Bytes BlockBytes::*part) {
  Bytes sum;
  for (const BlockBytes& block : times.bytes) sum += block.*part;
  return sum;
}

// VGG-16's convolutions have 14,710,464 weights without biases, and 15.35 (313.2) million
// multiply-adds for an image of 224 (32) pixels' side, in thousands.
TEST(CompressionWorkload, HasTheWeightsAndMultiplyAddsOfVgg16) {
  for (const auto& [images, multiply_adds] :
       {std::pair(ImageSet::kImageNet, 15'346'630'656), {ImageSet::kCifar10, 313'196'544}}) {
    const BlockwiseTimes times = make_compression_times(images);
    ASSERT_EQ(times.blocks(), 13);
    EXPECT_EQ(sum_of(times, &BlockBytes::teacher), Bytes{14'710'464 * 4});
    const auto& teacher = times.teacher.back();
    const Duration sum = std::accumulate(teacher.begin(), teacher.end(), Duration{0});
    const Duration launches = 13 * 3 * kLaunch;
    EXPECT_NEAR(static_cast<double>((sum - launches).count()),
                static_cast<double>(multiply_adds) * times.batches.back() / kMultiplyAddsPerNs, 13);
    EXPECT_LT(sum_of(times, &BlockBytes::student).count * 8,
              sum_of(times, &BlockBytes::teacher).count);
  }
}

TEST(CompressionWorkload, LoadsAnImageInTheTimeOfTheSearch) {
  const double cifar = to_ms(make_compression_loader(ImageSet::kCifar10).alone);
  EXPECT_NEAR(cifar, 940.0 * 256 / 45'000, 1e-5);
  const double imagenet = to_ms(make_compression_loader(ImageSet::kImageNet).alone);
  EXPECT_NEAR(imagenet, 21.823 * 256 / 240, 1e-5);
}

}  // namespace
}  // namespace frazil
