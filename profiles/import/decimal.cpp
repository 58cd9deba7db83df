#include "profiles/import/decimal.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <system_error>

#include "profiles/units.h"

namespace frazil {
namespace {

constexpr std::string_view kDigits = "0123456789";
constexpr std::int64_t kFarExponent = 1'000'000;  // a larger exponent makes all zero or too large

// A number's digits without the point; `whole` digits stand before the point.
struct Decimal {
  std::string digits;
  std::int64_t whole = 0;
};

std::string_view take_digits(std::string_view& text) {
  const std::size_t count = std::min(text.find_first_not_of(kDigits), text.size());
  const std::string_view digits = text.substr(0, count);
  text.remove_prefix(count);
  return digits;
}

std::optional<std::int64_t> read_exponent(std::string_view text) {
  const bool is_negative = text.starts_with('-');
  if (is_negative || text.starts_with('+')) text.remove_prefix(1);
  if (text.empty() || text.find_first_not_of(kDigits) != std::string_view::npos) return {};
  std::int64_t exponent = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), exponent);
  if (error != std::errc{} || exponent > kFarExponent) exponent = kFarExponent;
  return is_negative ? -exponent : exponent;
}

std::optional<Decimal> read_decimal(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  Decimal decimal;
  decimal.digits = take_digits(text);
  decimal.whole = static_cast<std::int64_t>(decimal.digits.size());
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    decimal.digits += take_digits(text);
  }
  if (decimal.digits.empty()) return std::nullopt;
  if (text.starts_with('e') || text.starts_with('E')) {
    const auto exponent = read_exponent(text.substr(1));
    if (!exponent) return std::nullopt;
    decimal.whole += *exponent;
    text = {};
  }
  if (!text.empty()) return std::nullopt;
  return decimal;
}

}  // namespace

std::optional<std::int64_t> scale_decimal(std::string_view number, int decimals,
                                          Rounding rounding) {
  const std::optional<Decimal> decimal = read_decimal(number);
  if (!decimal) return std::nullopt;
  const std::string_view digits = decimal->digits;
  const std::int64_t whole = decimal->whole + decimals;  // digits of the answer
  const auto size = static_cast<std::int64_t>(digits.size());
  std::int64_t value = 0;
  for (std::int64_t i = 0; i < whole; ++i) {
    if (i >= size && value == 0) break;  // nothing but zeros
    value = value * 10 + (i < size ? digits[static_cast<std::size_t>(i)] - '0' : 0);
    if (value > kLargestQuantity) return std::nullopt;
  }
  const std::string_view rest =
      whole >= size ? std::string_view{}
                    : digits.substr(static_cast<std::size_t>(std::max<std::int64_t>(whole, 0)));
  const bool has_rest = rest.find_first_not_of('0') != std::string_view::npos;
  const bool is_half = whole >= 0 && !rest.empty() && rest.front() >= '5';
  switch (rounding) {
    case Rounding::kExact:
      if (has_rest) return std::nullopt;
      break;
    case Rounding::kNearest:
      value += is_half ? 1 : 0;
      break;
    case Rounding::kUp:
      value += has_rest ? 1 : 0;
      break;
    case Rounding::kDown:
      break;
  }
  if (value > kLargestQuantity) return std::nullopt;
  return value;
}

}  // namespace frazil
