#include "exec/measuring/allocation_meter.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace frazil {
namespace {

at::Tensor make_bytes(std::int64_t bytes) { return at::empty({bytes}, at::kByte); }

TEST(AllocationMeter, CountsWhatIsThereAndTheMostThatWas) {
  const AllocationMeter meter;
  at::Tensor kept = make_bytes(1000);
  { const at::Tensor gone = make_bytes(500); }
  EXPECT_EQ(meter.live_bytes(), 1000);
  EXPECT_EQ(meter.peak_bytes(), 1500);
  kept.reset();
  EXPECT_EQ(meter.live_bytes(), 0);
  EXPECT_EQ(meter.peak_bytes(), 1500);
}

TEST(AllocationMeter, InsideAnotherTellsBoth) {
  const AllocationMeter outer;
  const at::Tensor before = make_bytes(100);
  at::Tensor inside;
  {
    const AllocationMeter inner;
    inside = make_bytes(20);
    EXPECT_EQ(inner.live_bytes(), 20);
  }
  EXPECT_EQ(outer.live_bytes(), 120);
  inside.reset();
  EXPECT_EQ(outer.live_bytes(), 100);
}

TEST(AllocationMeter, WithABookTakesOffWhatAnotherThreadFrees) {
  const auto book = std::make_shared<AllocationMeter::Book>();
  const AllocationMeter meter(book);
  at::Tensor handed = make_bytes(1000);
  const at::Tensor kept = make_bytes(10);
  std::int64_t others_least = 0;
  std::int64_t others_peak = 0;
  std::thread([&] {
    const AllocationMeter other(book);
    { const at::Tensor own = make_bytes(7); }
    handed.reset();
    others_least = other.live_bytes();
    others_peak = other.peak_bytes();
  }).join();
  EXPECT_EQ(others_least, 0);
  EXPECT_EQ(others_peak, 7);
  EXPECT_EQ(meter.live_bytes(), 10);
  EXPECT_EQ(meter.peak_bytes(), 1010);
}

TEST(AllocationMeter, WithABookIsSilentAboutFreesOfWhatWasThereBefore) {
  constexpr int kWarnsOfEvery = 1000;
  std::vector<at::Tensor> before;
  for (int i = 0; i <= kWarnsOfEvery; ++i) before.push_back(make_bytes(1));
  testing::internal::CaptureStderr();
  const auto book = std::make_shared<AllocationMeter::Book>();
  const AllocationMeter meter(book);
  before.clear();
  EXPECT_EQ(meter.live_bytes(), 0);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace frazil
