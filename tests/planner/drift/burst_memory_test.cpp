#include "planner/drift/burst_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

namespace frazil {
namespace {

TEST(BurstMemory, KeepsABurstForSixtyFourWindowsAfterItsOwn) {
  BurstMemory memory;
  EXPECT_EQ(memory.greatest(), 0);
  memory.begin_window();
  memory.add(9);
  EXPECT_EQ(memory.greatest(), 9);
  for (int window = 1; window <= 64; ++window) {
    memory.begin_window();
    EXPECT_EQ(memory.greatest(), 9) << window;
  }
  memory.begin_window();
  EXPECT_EQ(memory.greatest(), 0);
  EXPECT_EQ(memory.windows(), 66);
}

// The greatest of all bursts that are young enough, each kept.
TEST(BurstMemory, KnowsTheGreatestOfThoseItKeeps) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    BurstMemory memory;
    std::vector<std::pair<int, int>> all;  // window, score
    for (int window = 1; window <= 1'000; ++window) {
      memory.begin_window();
      for (std::uint64_t bursts = random() % 20; bursts < 3; ++bursts) {
        const int score = static_cast<int>(1 + random() % 12);
        memory.add(score);
        all.emplace_back(window, score);
      }
      int greatest = 0;
      for (const auto& [at, score] : all) {
        if (at >= window - 64) greatest = std::max(greatest, score);
      }
      ASSERT_EQ(memory.greatest(), greatest) << "window " << window;
    }
  }
}

}  // namespace
}  // namespace frazil
