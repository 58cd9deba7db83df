#include "traces/microseconds.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "traces/json_scan.h"

namespace frazil {
namespace {

constexpr int kDecimals = 3;
constexpr int kMostDigits = 19;  // most digits of a number that fits 64 bits
constexpr int kFarExponent = 1'000'000;

// Reads the exponent after `e`, clamped to +-kFarExponent: beyond it, the number is zero or out of
// range in any case.
int read_exponent(std::string_view text) {
  if (!text.empty() && text.front() == '+') text.remove_prefix(1);
  int exponent = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), exponent);
  if (error == std::errc{}) return std::clamp(exponent, -kFarExponent, kFarExponent);
  return text.starts_with('-') ? -kFarExponent : kFarExponent;
}

// A number as digits times 10^exponent; digits beyond the first nineteen only round it.
struct Decimal {
  std::uint64_t digits = 0;
  int count = 0;        // number of digits, without leading zeros
  int exponent = 0;     // power of ten of the last digit in `digits`
  bool rounds = false;  // the first digit left out is 5 or more

  void push(char digit, bool is_fraction) {
    if (count < kMostDigits) {
      digits = digits * 10 + static_cast<std::uint64_t>(digit - '0');
      if (digits > 0) ++count;
      if (is_fraction) --exponent;
      return;
    }
    if (count++ == kMostDigits) rounds = digit >= '5';
    if (!is_fraction) ++exponent;
  }
};

Decimal read_decimal(std::string_view number) {
  Decimal decimal;
  bool is_fraction = false;
  for (std::size_t i = 0; i < number.size(); ++i) {
    if (number[i] == '.') is_fraction = true;
    if (is_digit(number[i])) decimal.push(number[i], is_fraction);
    if (number[i] == 'e' || number[i] == 'E') {
      decimal.exponent += read_exponent(number.substr(i + 1));
      break;
    }
  }
  return decimal;
}

// Reads a plain number: no sign, no exponent, at most three decimals, as nearly all numbers are.
// Returns its nanoseconds, or none for any other number or one that does not fit 64 bits.
std::optional<std::uint64_t> read_plain(std::string_view number) {
  const char* at = number.data();
  const char* const end = at + number.size();
  std::uint64_t digits = 0;
  const auto take_digits = [&] {
    const char* const begin = at;
    for (; at != end && is_digit(*at); ++at) {
      digits = digits * 10 + static_cast<std::uint64_t>(*at - '0');
    }
    return at - begin;
  };
  if (take_digits() > kMostDigits - kDecimals) return std::nullopt;
  std::ptrdiff_t decimals = 0;
  if (at != end && *at == '.') {
    ++at;
    decimals = take_digits();
  }
  if (at != end || decimals > kDecimals) return std::nullopt;
  for (; decimals < kDecimals; ++decimals) digits *= 10;
  return digits;
}

}  // namespace

std::optional<std::int64_t> parse_microseconds(std::string_view number) {
  constexpr std::uint64_t kLatest = kLatestNanoseconds;
  const bool is_negative = number.starts_with('-');
  if (is_negative) number.remove_prefix(1);
  if (const auto plain = read_plain(number); plain && *plain <= kLatest) {
    const auto value = static_cast<std::int64_t>(*plain);
    return is_negative ? -value : value;
  }
  Decimal decimal = read_decimal(number);
  decimal.exponent += kDecimals;
  for (; decimal.exponent > 0 && decimal.digits > 0; --decimal.exponent) {
    if (decimal.digits > kLatest / 10) return std::nullopt;
    decimal.digits *= 10;
  }
  for (; decimal.exponent < 0 && (decimal.digits > 0 || decimal.rounds); ++decimal.exponent) {
    decimal.rounds = decimal.digits % 10 >= 5;
    decimal.digits /= 10;
  }
  const std::uint64_t count = decimal.digits + (decimal.rounds ? 1 : 0);
  if (count > kLatest) return std::nullopt;
  const auto value = static_cast<std::int64_t>(count);
  return is_negative ? -value : value;
}

std::string to_microseconds(Duration time) {
  const std::int64_t count = time.count();
  const auto magnitude =
      count < 0 ? 0 - static_cast<std::uint64_t>(count) : static_cast<std::uint64_t>(count);
  return fmt::format("{}{}.{:03}", count < 0 ? "-" : "", magnitude / 1000, magnitude % 1000);
}

}  // namespace frazil
