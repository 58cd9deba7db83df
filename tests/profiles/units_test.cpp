#include "profiles/units.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <type_traits>
#include <unordered_set>

namespace frazil {
namespace {

constexpr std::int64_t kLargestOperand = std::numeric_limits<std::int64_t>::max();

// True if `time` is the smallest t with rate x t >= size x 10^9, by this definition and not by a
// division.
bool is_time_to_move(Duration time, Bytes size, BytesPerSecond rate) {
  __extension__ using Wide = __int128;
  const Wide needed = static_cast<Wide>(size.count) * 1'000'000'000;
  const Wide moved = static_cast<Wide>(rate.count) * time.count();
  return moved >= needed && moved - rate.count < needed;
}

TEST(Units, MovingBytesTakesTheirQuotientRoundedUp) {
  EXPECT_EQ((Bytes{1'000'000'000} / BytesPerSecond{1'000'000'000}).count(), 1'000'000'000);
  EXPECT_EQ((Bytes{1} / BytesPerSecond{1'000'000'000}).count(), 1);
  EXPECT_EQ((Bytes{1} / BytesPerSecond{3}).count(), 333'333'334);
  EXPECT_EQ((Bytes{0} / BytesPerSecond{3}).count(), 0);
}

TEST(Units, AnUnlimitedRateTakesNoTime) {
  EXPECT_EQ((Bytes{kLargestOperand} / BytesPerSecond{0}).count(), 0);
}

TEST(Units, TransferTimeIsExactForEverySizeWhoseTimeFits) {
  constexpr std::uint64_t kSeed = 20;
  SCOPED_TRACE(kSeed);
  std::mt19937_64 random(kSeed);
  for (int i = 0; i < 20'000; ++i) {
    // Widths are random, so that small and large numbers both come up.
    const Bytes size{static_cast<std::int64_t>(random() >> (1 + random() % 62))};
    const std::int64_t least_rate = size.count / 9'000'000'000 + 1;
    const BytesPerSecond rate{least_rate +
                              static_cast<std::int64_t>(random() >> (2 + random() % 60))};
    ASSERT_TRUE(is_time_to_move(size / rate, size, rate)) << size.count << " / " << rate.count;
  }
}

TEST(Units, TransferTimeIsExactAtTheLargestSize) {
  EXPECT_TRUE(is_time_to_move(Bytes{kLargestOperand} / BytesPerSecond{kLargestOperand},
                              {kLargestOperand}, {kLargestOperand}));
  EXPECT_EQ((Bytes{kLargestOperand} / BytesPerSecond{1'000'000'000}).count(), kLargestOperand);
}

TEST(Units, BytesAddAndScale) {
  Bytes sum{5};
  sum += Bytes{3};
  sum -= Bytes{1};
  EXPECT_EQ(sum, Bytes{7});
  EXPECT_EQ(sum * 3, Bytes{21});
  EXPECT_EQ(sum + Bytes{1} - Bytes{8}, Bytes{0});
  EXPECT_LT(Bytes{-1}, Bytes{0});
}

TEST(Units, IndicesOfDifferentNounsDoNotMix) {
  EXPECT_FALSE((std::is_convertible_v<LayerId, StageId>));
  EXPECT_FALSE((std::is_convertible_v<int, LayerId>));
  EXPECT_FALSE((std::is_convertible_v<LayerId, int>));
  EXPECT_EQ(LayerId(std::size_t{3}), LayerId(std::int32_t{3}));
  EXPECT_EQ(LayerId(2).index(), 2u);
  EXPECT_LT(DeviceId(1), DeviceId(2));
}

TEST(Units, IndicesHashByValue) {
  const std::unordered_set<LayerId> layers = {LayerId(1), LayerId(2), LayerId(1)};
  EXPECT_EQ(layers.size(), 2u);
}

}  // namespace
}  // namespace frazil
