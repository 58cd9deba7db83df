#include "planner/orders/wake_times.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace frazil {
namespace {

TEST(WakeTimes, NameTheLastOfThoseThatWakeFirstAsASearchThroughAllDoes) {
  constexpr std::int64_t kNoWake = 1000;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const std::size_t devices = 1 + random() % 20;
    WakeTimes wakes(devices, kNoWake);
    std::vector<std::int64_t> times(devices, kNoWake);
    for (int change = 0; change < 100; ++change) {
      const std::size_t device = random() % devices;
      const auto time = static_cast<std::int64_t>(random() % 8 == 0 ? kNoWake : random() % 6);
      wakes.set(device, time);
      times[device] = time;
      const std::int64_t earliest = *std::min_element(times.begin(), times.end());
      ASSERT_EQ(wakes.earliest(), earliest);
      if (earliest == kNoWake) continue;
      const auto last = std::find(times.rbegin(), times.rend(), earliest);
      ASSERT_EQ(wakes.next(), static_cast<std::size_t>(times.rend() - last) - 1);
      ASSERT_EQ(wakes.of(device), time);
    }
  }
}

}  // namespace
}  // namespace frazil
