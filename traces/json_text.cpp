#include "traces/json_text.h"

#include <algorithm>
#include <charconv>
#include <cstdint>

#include "traces/json_scan.h"

namespace frazil {
namespace {

void append_utf8(std::string& text, std::uint32_t code) {
  const auto byte = [&text](std::uint32_t value) { text += static_cast<char>(value); };
  const auto tail = [&](int shift) { byte(0x80 | ((code >> shift) & 0x3f)); };
  if (code < 0x80) return byte(code);
  if (code < 0x800) {
    byte(0xc0 | (code >> 6));
    return tail(0);
  }
  if (code < 0x10000) {
    byte(0xe0 | (code >> 12));
    tail(6);
    return tail(0);
  }
  byte(0xf0 | (code >> 18));
  tail(12);
  tail(6);
  tail(0);
}

// Takes the four hexadecimal digits of \uXXXX off the front of `text`; returns none if they are not
// four.
std::optional<std::uint32_t> take_code_unit(std::string_view& text) {
  if (text.size() < 4) return std::nullopt;
  std::uint32_t unit = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + 4, unit, 16);
  if (error != std::errc{} || end != text.data() + 4) return std::nullopt;
  text.remove_prefix(4);
  return unit;
}

// Takes the code point that follows `\u` off the front of `text`; joins a surrogate with the one
// that follows it.
std::optional<std::uint32_t> take_code_point(std::string_view& text) {
  constexpr std::uint32_t kReplacement = 0xfffd;
  const auto first = take_code_unit(text);
  if (!first || *first < 0xd800 || *first > 0xdfff) return first;
  if (*first > 0xdbff || !text.starts_with("\\u")) return kReplacement;
  std::string_view ahead = text.substr(2);
  const auto second = take_code_unit(ahead);
  if (!second || *second < 0xdc00 || *second > 0xdfff) return kReplacement;
  text = ahead;
  return 0x10000 + ((*first - 0xd800) << 10) + (*second - 0xdc00);
}

}  // namespace

bool is_json_number(std::string_view text) {
  const char* at = text.data();
  const char* const end = at + text.size();
  const auto take = [&](char symbol) {
    const bool stands = at != end && *at == symbol;
    if (stands) ++at;
    return stands;
  };
  const auto take_digits = [&] {
    const char* const first = at;
    while (at != end && is_digit(*at)) ++at;
    return at != first;
  };
  take('-');
  if (!take('0') && !take_digits()) return false;
  if (take('.') && !take_digits()) return false;
  if (take('e') || take('E')) {
    if (!take('+')) take('-');
    if (!take_digits()) return false;
  }
  return at == end;
}

std::optional<std::string> unescape_json(std::string_view raw) {
  constexpr std::string_view kEscapes = "\"\\/bfnrt";
  constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
  std::string text;
  for (std::string_view rest = raw; !rest.empty();) {
    const std::size_t plain = std::min(rest.find('\\'), rest.size());
    text += rest.substr(0, plain);
    rest.remove_prefix(plain);
    if (rest.empty()) break;
    const std::string_view escape = rest.substr(0, 2);
    rest.remove_prefix(escape.size());
    const std::size_t place = kEscapes.find(escape.back());
    if (escape == "\\u") {
      const auto code = take_code_point(rest);
      if (!code) return std::nullopt;
      append_utf8(text, *code);
    } else if (place != std::string_view::npos) {
      text += kMeanings[place];
    } else {
      return std::nullopt;
    }
  }
  return text;
}

}  // namespace frazil
