#pragma once
// Finds the ends of runs of characters in JSON text, sixteen characters at a time if the processor
// can. Requires that every text ends in a zero byte, which ends every run, and that kScanMargin
// bytes from the zero byte on can be read, whatever they hold.

#include <algorithm>
#include <cstddef>
#include <cstdint>

#ifdef __SSE2__
#include <emmintrin.h>

#include <bit>
#endif

namespace frazil {

inline constexpr std::size_t kScanMargin = 16;

// Returns the first quote, backslash or control character: each ends a run in a string.
inline const char* find_string_stop(const char* at);
inline const char* find_non_space(const char* at);

inline bool is_json_space(char character) {
  return character == ' ' || character == '\t' || character == '\r' || character == '\n';
}

#ifdef __SSE2__

// Returns the first character that `is_stop` marks, by setting all bits of its byte.
template <class IsStop>
const char* find_stop(const char* at, IsStop is_stop) {
  while (true) {
    const __m128i block = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
    const auto stops = static_cast<unsigned>(_mm_movemask_epi8(is_stop(block)));
    if (stops != 0) return at + static_cast<unsigned>(std::countr_zero(stops));
    at += sizeof(block);
  }
}

inline __m128i equals(__m128i block, char character) {
  return _mm_cmpeq_epi8(block, _mm_set1_epi8(character));
}

inline const char* find_non_space(const char* at) {
  return find_stop(at, [](__m128i block) {
    const __m128i blanks = _mm_or_si128(equals(block, ' '), equals(block, '\t'));
    const __m128i breaks = _mm_or_si128(equals(block, '\r'), equals(block, '\n'));
    return equals(_mm_or_si128(blanks, breaks), 0);
  });
}

inline const char* find_string_stop(const char* at) {
  return find_stop(at, [](__m128i block) {
    const __m128i controls = equals(_mm_max_epu8(block, _mm_set1_epi8(0x1f)), 0x1f);
    return _mm_or_si128(controls, _mm_or_si128(equals(block, '"'), equals(block, '\\')));
  });
}

#else

inline const char* find_non_space(const char* at) {
  while (is_json_space(*at)) ++at;
  return at;
}

inline const char* find_string_stop(const char* at) {
  while (static_cast<unsigned char>(*at) >= 0x20 && *at != '"' && *at != '\\') ++at;
  return at;
}

#endif

inline bool is_digit(char character) { return character >= '0' && character <= '9'; }

inline bool may_stand_in_number(char character) {
  return is_digit(character) || character == '-' || character == '+' || character == '.' ||
         character == 'e' || character == 'E';
}

inline const char* skip_digits(const char* at) {
  while (is_digit(*at)) ++at;
  return at;
}

// Returns the end of a number without exponent, as nearly all numbers are. If a number goes on from
// there, or `begin` is no number, the character there may stand in a number.
inline const char* skip_plain_number(const char* begin) {
  const char* const whole = *begin == '-' ? begin + 1 : begin;
  const char* const point = skip_digits(whole);
  if (point == whole) return begin;
  if (*whole == '0' && point != whole + 1) return whole + 1;
  if (*point != '.') return point;
  const char* const end = skip_digits(point + 1);
  return end == point + 1 ? point : end;
}

// Counts in blocks whose counts fit a byte, so that a compiler adds sixteen at once.
inline int count_lines(const char* at, const char* end) {
  constexpr std::ptrdiff_t kBlock = 128;
  int lines = 0;
  for (; end - at >= kBlock; at += kBlock) {
    std::uint8_t inside = 0;
    for (std::ptrdiff_t i = 0; i < kBlock; ++i) {
      inside = static_cast<std::uint8_t>(inside + (at[i] == '\n' ? 1 : 0));
    }
    lines += inside;
  }
  return lines + static_cast<int>(std::count(at, end, '\n'));
}

}  // namespace frazil
