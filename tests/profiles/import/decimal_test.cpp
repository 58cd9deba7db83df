#include "profiles/import/decimal.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "profiles/units.h"

namespace frazil {
namespace {

TEST(Decimal, IsExactWhereTheDigitsAre) {
  EXPECT_EQ(scale_decimal("0.539", 6, Rounding::kExact), 539'000);
  EXPECT_EQ(scale_decimal("44302336.000", 0, Rounding::kExact), 44'302'336);
  EXPECT_EQ(scale_decimal("12.", 2, Rounding::kExact), 1'200);
  EXPECT_EQ(scale_decimal(".5", 1, Rounding::kExact), 5);
  EXPECT_EQ(scale_decimal("+7", 0, Rounding::kExact), 7);
  EXPECT_EQ(scale_decimal("1.5e3", 0, Rounding::kExact), 1'500);
  EXPECT_EQ(scale_decimal("1500E-3", 1, Rounding::kExact), 15);
  EXPECT_EQ(scale_decimal("0.1", 0, Rounding::kExact), std::nullopt);
  EXPECT_EQ(scale_decimal("0.0000000", 6, Rounding::kExact), 0);
  EXPECT_EQ(scale_decimal("00012", 0, Rounding::kExact), 12);
}

TEST(Decimal, RoundsBeyondTheSmallestUnit) {
  EXPECT_EQ(scale_decimal("6.959999999999999", 12, Rounding::kNearest), 6'960'000'000'000);
  EXPECT_EQ(scale_decimal("5.820766091346741e-08", 12, Rounding::kNearest), 58'208);
  EXPECT_EQ(scale_decimal("0.5", 0, Rounding::kNearest), 1);
  EXPECT_EQ(scale_decimal("0.49999999", 0, Rounding::kNearest), 0);
  EXPECT_EQ(scale_decimal("5e-2", 0, Rounding::kNearest), 0);
  EXPECT_EQ(scale_decimal("0.125", 0, Rounding::kUp), 1);
  EXPECT_EQ(scale_decimal("1e-999999999999999999999", 0, Rounding::kUp), 1);
  EXPECT_EQ(scale_decimal("17.9", 0, Rounding::kDown), 17);
}

TEST(Decimal, RefusesWhatIsNoNumberOrTooLarge) {
  for (const char* const text :
       {"", ".", "-1", "-0", "nan", "inf", "1e", "1e+", "e5", "1.2.3", "0x10", "1 ", " 1", "1,5",
        "9007199254740993", "1e17", "1e999999999999", "1e99999999999999999999999"}) {
    EXPECT_EQ(scale_decimal(text, 0, Rounding::kNearest), std::nullopt) << text;
  }
  EXPECT_EQ(scale_decimal("9007199254740992", 0, Rounding::kExact), kLargestQuantity);
  EXPECT_EQ(scale_decimal("9007199254740992.5", 0, Rounding::kUp), std::nullopt);
  EXPECT_EQ(scale_decimal("0e99999999999999999999999", 0, Rounding::kExact), 0);
}

TEST(Decimal, EqualsLongDivisionOnRandomNumbers) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 2000; ++i) {
    SCOPED_TRACE("seed 7, number " + std::to_string(i));
    const auto value = static_cast<std::int64_t>(random() >> 12);  // below 2^52
    const int places = static_cast<int>(random() % 12);
    const int decimals = static_cast<int>(random() % 4);
    std::string digits = std::to_string(value);
    while (digits.size() <= static_cast<std::size_t>(places)) digits.insert(0, "0");
    digits.insert(digits.size() - static_cast<std::size_t>(places), ".");
    __extension__ using Wide = __int128;
    Wide scaled = value;
    for (int d = 0; d < decimals; ++d) scaled *= 10;
    Wide unit = 1;
    for (int p = 0; p < places; ++p) unit *= 10;
    const auto expect = [&](Rounding rounding, Wide quotient) {
      const auto actual = scale_decimal(digits, decimals, rounding);
      if (quotient > kLargestQuantity) {
        EXPECT_EQ(actual, std::nullopt) << digits;
      } else {
        EXPECT_EQ(actual, static_cast<std::int64_t>(quotient)) << digits;
      }
    };
    expect(Rounding::kDown, scaled / unit);
    expect(Rounding::kUp, (scaled + unit - 1) / unit);
    expect(Rounding::kNearest, (2 * scaled + unit) / (2 * unit));
  }
}

}  // namespace
}  // namespace frazil
