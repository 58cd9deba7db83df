#include "profiles/quantity_text.h"

#include <fmt/format.h>

#include <array>
#include <cctype>
#include <limits>
#include <optional>
#include <span>

#include "profiles/error.h"

namespace frazil {
namespace {

constexpr std::size_t kLongestText = 100;
constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();

struct Unit {
  std::string_view name;
  std::int64_t size;
};

constexpr std::array kTimeUnits = {
    Unit{"ns", 1},
    Unit{"us", 1'000},
    Unit{"ms", 1'000'000},
    Unit{"s", 1'000'000'000},
    Unit{"min", 60'000'000'000},
    Unit{"h", 3'600'000'000'000},
};

constexpr std::array kByteUnits = {
    Unit{"B", 1},
    Unit{"kB", 1'000},
    Unit{"MB", 1'000'000},
    Unit{"GB", 1'000'000'000},
    Unit{"TB", 1'000'000'000'000},
    Unit{"KiB", std::int64_t{1} << 10},
    Unit{"MiB", std::int64_t{1} << 20},
    Unit{"GiB", std::int64_t{1} << 30},
    Unit{"TiB", std::int64_t{1} << 40},
};

// A kind of quantity: how it is written, and its names in messages.
struct Quantity {
  std::span<const Unit> units;
  std::string_view suffix;    // after the unit's name
  std::string_view expected;  // "a duration such as 0.5ms"
  std::string_view whole;     // "a whole number of ns"
};

constexpr Quantity kDuration = {kTimeUnits, "", "a duration such as `0.5ms` (ns us ms s min h)",
                                "a whole number of ns"};
constexpr Quantity kSize = {kByteUnits, "", "a size such as `2GiB` (B kB MB GB TB KiB MiB GiB TiB)",
                            "a whole number of bytes"};
constexpr Quantity kBandwidth = {
    kByteUnits, "/s", "a bandwidth such as `12.5GB/s` (B/s kB/s ... TB/s KiB/s ... TiB/s)",
    "a whole number of bytes per second"};

struct Decimal {
  std::string digits;        // the whole part, then the fraction
  std::size_t fraction = 0;  // the number of the fraction's digits
};

bool is_digit(char character) { return std::isdigit(static_cast<unsigned char>(character)) != 0; }

// Takes "12" or "12.5" off the front of `text`: no sign, no exponent, digits on both sides of a
// dot.
std::optional<Decimal> take_decimal(std::string_view& text) {
  const auto take_digits = [&text](std::string& digits) {
    std::size_t count = 0;
    while (count < text.size() && is_digit(text[count])) ++count;
    digits += text.substr(0, count);
    text.remove_prefix(count);
    return count;
  };
  Decimal decimal;
  if (take_digits(decimal.digits) == 0) return std::nullopt;
  if (!text.empty() && text.front() == '.') {
    text.remove_prefix(1);
    decimal.fraction = take_digits(decimal.digits);
    if (decimal.fraction == 0) return std::nullopt;
  }
  return decimal;
}

enum class Failure { kNotWhole, kTooLarge };

struct Product {
  std::int64_t value = 0;
  std::optional<Failure> failure;
};

// Multiplies decimal x unit by long multiplication, so that no digit is lost whatever the length.
Product multiply(const Decimal& decimal, std::int64_t unit) {
  Product product;
  std::int64_t carry = 0;
  std::int64_t place = 1;      // the value of the result's next digit
  bool place_is_past = false;  // a digit here would not fit 64 bits
  const std::size_t size = decimal.digits.size();
  for (std::size_t position = 0; position < size || carry != 0; ++position) {
    const char digit = position < size ? decimal.digits[size - 1 - position] : '0';
    carry += (digit - '0') * unit;
    const std::int64_t result = carry % 10;
    carry /= 10;
    if (position < decimal.fraction) {
      if (result != 0) product.failure = Failure::kNotWhole;
      continue;
    }
    if (result != 0 && (place_is_past || result > (kLargest - product.value) / place)) {
      product.failure = Failure::kTooLarge;
      return product;
    }
    if (!place_is_past) product.value += result * place;
    place_is_past = place_is_past || place > kLargest / 10;
    if (!place_is_past) place *= 10;
  }
  return product;
}

std::optional<std::int64_t> find_unit(const Quantity& quantity, std::string_view name) {
  if (!name.ends_with(quantity.suffix)) return std::nullopt;
  name.remove_suffix(quantity.suffix.size());
  for (const Unit& unit : quantity.units) {
    if (unit.name == name) return unit.size;
  }
  return std::nullopt;
}

std::int64_t parse_quantity(std::string_view text, const std::string& flag,
                            const Quantity& quantity) {
  const auto fail = [&](const std::string& expected) {
    const std::string_view shown = text.substr(0, kLongestText);
    throw InputError(flag, 0, fmt::format("`{}`", shown), expected);
  };
  const std::string written(quantity.expected);
  if (text.size() > kLongestText) fail(written);
  std::string_view rest = text;
  const std::optional<Decimal> decimal = take_decimal(rest);
  if (!decimal) fail(written);
  if (!rest.empty() && rest.front() == ' ') rest.remove_prefix(1);
  const std::optional<std::int64_t> unit = find_unit(quantity, rest);
  if (!unit) fail(written);
  const Product product = multiply(*decimal, *unit);
  if (product.failure == Failure::kNotWhole) fail(std::string(quantity.whole));
  if (product.failure == Failure::kTooLarge) {
    fail(fmt::format("{} up to {}", quantity.whole, kLargest));
  }
  return product.value;
}

// Writes `count` in `unit` to `decimals` places, rounded half up. Returns nothing when the number
// reaches `limit`.
std::optional<std::string> in_unit(std::uint64_t count, const Unit& unit, int decimals,
                                   std::uint64_t limit) {
  __extension__ using Wide = unsigned __int128;
  const auto size = static_cast<Wide>(unit.size);
  if (size == 1) {
    if (count >= limit) return std::nullopt;
    return fmt::format("{} {}", count, unit.name);
  }
  std::uint64_t scale = 1;
  for (int place = 0; place < decimals; ++place) scale *= 10;
  const auto scaled = static_cast<Wide>((count * static_cast<Wide>(scale) * 2 + size) / (size * 2));
  if (scaled >= static_cast<Wide>(limit) * scale) return std::nullopt;
  const auto rounded = static_cast<std::uint64_t>(scaled);
  return fmt::format("{}.{:0{}} {}", rounded / scale, rounded % scale, decimals, unit.name);
}

// Writes `count` in the first unit in which the number stays below `limit`, else in the last unit.
std::string to_text(std::int64_t count, std::span<const Unit> units, int decimals,
                    std::uint64_t limit) {
  const std::string sign = count < 0 ? "-" : "";
  const std::uint64_t magnitude =
      count < 0 ? 0 - static_cast<std::uint64_t>(count) : static_cast<std::uint64_t>(count);
  for (const Unit& unit : units.first(units.size() - 1)) {
    if (const auto text = in_unit(magnitude, unit, decimals, limit)) return sign + *text;
  }
  return sign +
         *in_unit(magnitude, units.back(), decimals, std::numeric_limits<std::uint64_t>::max());
}

}  // namespace

Duration parse_duration(std::string_view text, const std::string& flag) {
  return Duration{parse_quantity(text, flag, kDuration)};
}

std::vector<Duration> parse_durations(std::string_view comma_list, const std::string& flag) {
  std::vector<Duration> durations;
  while (true) {
    const std::size_t comma = comma_list.find(',');
    durations.push_back(parse_duration(comma_list.substr(0, comma), flag));
    if (comma == std::string_view::npos) return durations;
    comma_list.remove_prefix(comma + 1);
  }
}

Bytes parse_bytes(std::string_view text, const std::string& flag) {
  return {parse_quantity(text, flag, kSize)};
}

BytesPerSecond parse_bandwidth(std::string_view text, const std::string& flag) {
  const std::int64_t count = parse_quantity(text, flag, kBandwidth);
  if (count == 0) throw InputError(flag, 0, fmt::format("`{}`", text), "a bandwidth above zero");
  return {count};
}

std::string to_text(Duration duration) {
  return to_text(duration.count(), std::span(kTimeUnits).first<4>(), 3, 1000);
}

std::string to_text(Bytes bytes) {
  constexpr std::array kBinaryUnits = {kByteUnits[0], kByteUnits[5], kByteUnits[6], kByteUnits[7],
                                       kByteUnits[8]};
  return to_text(bytes.count, kBinaryUnits, 2, 1024);
}

}  // namespace frazil
