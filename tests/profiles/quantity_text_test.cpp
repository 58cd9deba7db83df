#include "profiles/quantity_text.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "profiles/error.h"

namespace frazil {
namespace {

constexpr std::int64_t kLargestAmount = std::numeric_limits<std::int64_t>::max();

TEST(QuantityText, ReadsDurationsExactly) {
  EXPECT_EQ(parse_duration("0.313ms", "--hop").count(), 313'000);
  EXPECT_EQ(parse_duration("0.1s", "--hop").count(), 100'000'000);
  EXPECT_EQ(parse_duration("0ns", "--hop").count(), 0);
  EXPECT_EQ(parse_duration("007us", "--hop").count(), 7'000);
  EXPECT_EQ(parse_duration("1.5min", "--hop").count(), 90'000'000'000);
  EXPECT_EQ(parse_duration("2h", "--hop").count(), 7'200'000'000'000);
  EXPECT_EQ(parse_duration("1.50 ms", "--hop").count(), 1'500'000);
  EXPECT_EQ(parse_duration("1.000000000000000000000000000ns", "--hop").count(), 1);
}

TEST(QuantityText, ReadsTheLargestDurationAndRefusesTheNext) {
  EXPECT_EQ(parse_duration("9223372036854775807ns", "--hop").count(), kLargestAmount);
  EXPECT_EQ(parse_duration("9223372036.854775807s", "--hop").count(), kLargestAmount);
  EXPECT_THROW(parse_duration("9223372036854775808ns", "--hop"), InputError);
  EXPECT_THROW(parse_duration("9223372036.854775808s", "--hop"), InputError);
  EXPECT_THROW(parse_duration("10000000000000000000ns", "--hop"), InputError);
  EXPECT_THROW(parse_duration("2562048h", "--hop"), InputError);
}

TEST(QuantityText, ReadsSizesWithDecimalAndBinaryPrefixes) {
  EXPECT_EQ(parse_bytes("12B", "--memory").count, 12);
  EXPECT_EQ(parse_bytes("1kB", "--memory").count, 1'000);
  EXPECT_EQ(parse_bytes("1KiB", "--memory").count, 1'024);
  EXPECT_EQ(parse_bytes("1.5MB", "--memory").count, 1'500'000);
  EXPECT_EQ(parse_bytes("1.5MiB", "--memory").count, 1'572'864);
  EXPECT_EQ(parse_bytes("2GB", "--memory").count, 2'000'000'000);
  EXPECT_EQ(parse_bytes("2GiB", "--memory").count, 2'147'483'648);
  EXPECT_EQ(parse_bytes("3TB", "--memory").count, 3'000'000'000'000);
  EXPECT_EQ(parse_bytes("1TiB", "--memory").count, 1'099'511'627'776);
  // The text is 2^-40 TiB: it has forty decimals, of which none is lost.
  EXPECT_EQ(parse_bytes("0.0000000000009094947017729282379150390625TiB", "--memory").count, 1);
}

TEST(QuantityText, ReadsBandwidths) {
  EXPECT_EQ(parse_bandwidth("12.5GB/s", "--bandwidth").count, 12'500'000'000);
  EXPECT_EQ(parse_bandwidth("1KiB/s", "--bandwidth").count, 1'024);
  EXPECT_EQ(parse_bandwidth("1 B/s", "--bandwidth").count, 1);
}

TEST(QuantityText, ReadsOneDurationOrACommaListOfThem) {
  EXPECT_EQ(parse_durations("1ms", "--forward"), (std::vector<Duration>{Duration{1'000'000}}));
  EXPECT_EQ(parse_durations("1ms,2us,0ns", "--forward"),
            (std::vector<Duration>{Duration{1'000'000}, Duration{2'000}, Duration{0}}));
  EXPECT_THROW(parse_durations("1ms,,2ms", "--forward"), InputError);
  EXPECT_THROW(parse_durations("1ms,", "--forward"), InputError);
  EXPECT_THROW(parse_durations("", "--forward"), InputError);
}

// The expected number is made of digits: an integer and a fraction of as many digits as the unit
// has zeros, joined as text.
TEST(QuantityText, AgreesWithTheDigitsItself) {
  constexpr std::uint64_t kSeed = 7;
  SCOPED_TRACE(kSeed);
  std::mt19937_64 random(kSeed);
  for (int i = 0; i < 5'000; ++i) {
    const std::uint64_t seconds = random() % 9'000'000'000;
    const std::uint64_t nanoseconds = random() % 1'000'000'000;
    std::string fraction = std::to_string(nanoseconds);
    fraction.insert(0, 9 - fraction.size(), '0');
    const std::string text = std::to_string(seconds) + "." + fraction + "s";
    ASSERT_EQ(parse_duration(text, "--hop").count(),
              static_cast<std::int64_t>(seconds * 1'000'000'000 + nanoseconds))
        << text;
  }
}

enum class Reader { kDuration, kBytes, kBandwidth };

struct Refusal {
  Reader reader;
  std::string text;
  std::string expected;
};

void read(const Refusal& refusal) {
  switch (refusal.reader) {
    case Reader::kDuration:
      parse_duration(refusal.text, "--flag");
      return;
    case Reader::kBytes:
      parse_bytes(refusal.text, "--flag");
      return;
    case Reader::kBandwidth:
      parse_bandwidth(refusal.text, "--flag");
      return;
  }
}

TEST(QuantityText, RefusesWhatIsNoQuantityInOneSentence) {
  const std::vector<Refusal> refusals = {
      {Reader::kDuration, "", "a duration such as `0.5ms`"},
      {Reader::kDuration, "1", "a duration such as `0.5ms`"},
      {Reader::kDuration, "ms", "a duration such as `0.5ms`"},
      {Reader::kDuration, "-1ms", "a duration such as `0.5ms`"},
      {Reader::kDuration, "+1ms", "a duration such as `0.5ms`"},
      {Reader::kDuration, "nan ms", "a duration such as `0.5ms`"},
      {Reader::kDuration, "inf", "a duration such as `0.5ms`"},
      {Reader::kDuration, "1e99s", "a duration such as `0.5ms`"},
      {Reader::kDuration, "1e3ms", "a duration such as `0.5ms`"},
      {Reader::kDuration, ".5ms", "a duration such as `0.5ms`"},
      {Reader::kDuration, "5.ms", "a duration such as `0.5ms`"},
      {Reader::kDuration, "1..5ms", "a duration such as `0.5ms`"},
      {Reader::kDuration, "1,5ms", "a duration such as `0.5ms`"},
      {Reader::kDuration, "1  ms", "a duration such as `0.5ms`"},
      {Reader::kDuration, " 1ms", "a duration such as `0.5ms`"},
      {Reader::kDuration, "1ms ", "a duration such as `0.5ms`"},
      {Reader::kDuration, "1MS", "a duration such as `0.5ms`"},
      {Reader::kDuration, "1GiB", "a duration such as `0.5ms`"},
      {Reader::kDuration, "0x1ns", "a duration such as `0.5ms`"},
      {Reader::kDuration, "0.5ns", "a whole number of ns"},
      {Reader::kDuration, "0.0001us", "a whole number of ns"},
      {Reader::kDuration, "1.00000000000000000000000000000000001h", "a whole number of ns"},
      {Reader::kDuration, "99999999999h", "a whole number of ns up to 9223372036854775807"},
      {Reader::kDuration, std::string(101, '0') + "ns", "a duration such as `0.5ms`"},
      {Reader::kBytes, "2", "a size such as `2GiB`"},
      {Reader::kBytes, "2G", "a size such as `2GiB`"},
      {Reader::kBytes, "2gb", "a size such as `2GiB`"},
      {Reader::kBytes, "2KB", "a size such as `2GiB`"},
      {Reader::kBytes, "2GB/s", "a size such as `2GiB`"},
      {Reader::kBytes, "0.3KiB", "a whole number of bytes"},
      {Reader::kBytes, "9000000000TiB", "a whole number of bytes up to 9223372036854775807"},
      {Reader::kBandwidth, "2GB", "a bandwidth such as `12.5GB/s`"},
      {Reader::kBandwidth, "2Gb/s", "a bandwidth such as `12.5GB/s`"},
      {Reader::kBandwidth, "0B/s", "a bandwidth above zero"},
      {Reader::kBandwidth, "0.5B/s", "a whole number of bytes per second"},
  };
  for (const Refusal& refusal : refusals) {
    SCOPED_TRACE(refusal.text);
    try {
      read(refusal);
      ADD_FAILURE() << "taken";
    } catch (const InputError& error) {
      EXPECT_EQ(error.file(), "--flag");
      EXPECT_EQ(error.line(), 0);
      EXPECT_EQ(error.found(), "`" + refusal.text.substr(0, 100) + "`");
      EXPECT_EQ(error.expected().substr(0, refusal.expected.size()), refusal.expected);
    }
  }
}

TEST(QuantityText, ShowsDurationsToPeople) {
  EXPECT_EQ(to_text(Duration{0}), "0 ns");
  EXPECT_EQ(to_text(Duration{999}), "999 ns");
  EXPECT_EQ(to_text(Duration{1'000}), "1.000 us");
  EXPECT_EQ(to_text(Duration{38'008'000}), "38.008 ms");
  EXPECT_EQ(to_text(Duration{1'000'499}), "1.000 ms");
  EXPECT_EQ(to_text(Duration{1'000'500}), "1.001 ms");
  EXPECT_EQ(to_text(Duration{999'999'499}), "999.999 ms");
  EXPECT_EQ(to_text(Duration{999'999'500}), "1.000 s");
  EXPECT_EQ(to_text(Duration{3'600'000'000'000}), "3600.000 s");
  EXPECT_EQ(to_text(Duration{-1'500}), "-1.500 us");
  EXPECT_EQ(to_text(Duration::max()), "9223372036.855 s");
  EXPECT_EQ(to_text(Duration::min()), "-9223372036.855 s");
}

TEST(QuantityText, ShowsSizesToPeople) {
  EXPECT_EQ(to_text(Bytes{0}), "0 B");
  EXPECT_EQ(to_text(Bytes{1'023}), "1023 B");
  EXPECT_EQ(to_text(Bytes{1'024}), "1.00 KiB");
  EXPECT_EQ(to_text(Bytes{1'610'612'736}), "1.50 GiB");
  EXPECT_EQ(to_text(Bytes{1'048'575}), "1.00 MiB");
  EXPECT_EQ(to_text(Bytes{-2'048}), "-2.00 KiB");
  EXPECT_EQ(to_text(Bytes{kLargestAmount}), "8388608.00 TiB");
}

}  // namespace
}  // namespace frazil
