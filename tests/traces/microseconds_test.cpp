#include "traces/microseconds.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <string>

namespace frazil {
namespace {

TEST(Microseconds, AreReadExactlyInNanoseconds) {
  // A double would put the first time off by 47 ns.
  EXPECT_EQ(parse_microseconds("1712195495519689.047"), 1712195495519689047);
  EXPECT_EQ(parse_microseconds("0"), 0);
  EXPECT_EQ(parse_microseconds("-0.001"), -1);
  EXPECT_EQ(parse_microseconds("12"), 12000);
  EXPECT_EQ(parse_microseconds("12.5"), 12500);
  EXPECT_EQ(parse_microseconds("0012.500000"), 12500);
}

TEST(Microseconds, TakeExponents) {
  EXPECT_EQ(parse_microseconds("1.5e3"), 1500000);
  EXPECT_EQ(parse_microseconds("1712195495519689047e-3"), 1712195495519689047);
  EXPECT_EQ(parse_microseconds("2E+2"), 200000);
  EXPECT_EQ(parse_microseconds("1e-9"), 0);
  EXPECT_EQ(parse_microseconds("0e999999999999"), 0);
}

TEST(Microseconds, RoundWhatIsFinerThanNanoseconds) {
  EXPECT_EQ(parse_microseconds("0.0004"), 0);
  EXPECT_EQ(parse_microseconds("0.0005"), 1);
  EXPECT_EQ(parse_microseconds("-0.0005"), -1);
  EXPECT_EQ(parse_microseconds("0.00049999999999999999999999"), 0);
  EXPECT_EQ(parse_microseconds("1234567890123456.78950000000000000001"), 1234567890123456790);
}

TEST(Microseconds, AreRefusedBeyondHalfTheRange) {
  EXPECT_EQ(parse_microseconds("4611686018427387.903"), kLatestNanoseconds);
  EXPECT_EQ(parse_microseconds("4611686018427387.904"), std::nullopt);
  EXPECT_EQ(parse_microseconds("-4611686018427387.904"), std::nullopt);
  EXPECT_EQ(parse_microseconds("123456789012345678901234567890"), std::nullopt);
  EXPECT_EQ(parse_microseconds("1e300"), std::nullopt);
  EXPECT_EQ(parse_microseconds("1e99999999999"), std::nullopt);
}

// Moves the digits by hand: the point goes three places to the right, and what is behind it rounds.
std::optional<std::int64_t> shift_point(const std::string& whole, std::string decimals) {
  decimals += "0000";
  const std::string digits = whole + decimals.substr(0, 3);
  if (digits.size() > 19) return std::nullopt;
  const std::uint64_t value = std::stoull(digits) + (decimals[3] >= '5' ? 1 : 0);
  if (value > kLatestNanoseconds) return std::nullopt;
  return static_cast<std::int64_t>(value);
}

TEST(Microseconds, AreReadAsTheirDigitsSay) {
  std::mt19937_64 random(5);
  SCOPED_TRACE("seed 5");
  const auto draw_digits = [&random](std::size_t count) {
    std::string digits;
    while (digits.size() < count) digits += static_cast<char>('0' + random() % 10);
    return digits;
  };
  for (int i = 0; i < 20'000; ++i) {
    const std::string whole = std::to_string(1 + random() % 9) + draw_digits(random() % 22);
    const std::string decimals = draw_digits(random() % 7);
    const std::string number = decimals.empty() ? whole : whole + "." + decimals;
    const auto expected = shift_point(whole, decimals);
    ASSERT_EQ(parse_microseconds(number), expected) << number;
    if (expected) {
      ASSERT_EQ(parse_microseconds("-" + number), -*expected) << number;
    }
  }
}

TEST(Microseconds, ComeBackFromTheirText) {
  EXPECT_EQ(to_microseconds(Duration{-1500}), "-1.500");
  EXPECT_EQ(to_microseconds(Duration{7}), "0.007");
  EXPECT_EQ(to_microseconds(Duration{std::numeric_limits<std::int64_t>::min()}),
            "-9223372036854775.808");
  std::mt19937_64 random(7);
  SCOPED_TRACE("seed 7");
  for (int i = 0; i < 1000; ++i) {
    const int shift = 1 + i % 62;
    const auto time = static_cast<std::int64_t>(random() >> 2) >> shift;
    ASSERT_EQ(parse_microseconds(to_microseconds(Duration{time})), time);
    ASSERT_EQ(parse_microseconds(to_microseconds(Duration{-time})), -time);
  }
}

}  // namespace
}  // namespace frazil
