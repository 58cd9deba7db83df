#pragma once
// Converts the decimal microseconds of Chrome traces to integer nanoseconds and back. No floating
// point is used: every time with at most three decimals is exact.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "profiles/units.h"

namespace frazil {

// The latest time: half the range of 64 bits, so that every difference of two times fits.
inline constexpr std::int64_t kLatestNanoseconds = (std::int64_t{1} << 62) - 1;

// Returns the nanoseconds of a JSON number ("1712195495519689.047", "-0.5", "1.5e3"). Decimals
// beyond the third are rounded, halves away from zero. Returns none for a time beyond
// kLatestNanoseconds on either side of zero.
std::optional<std::int64_t> parse_microseconds(std::string_view number);

// Writes "-1.500": always three decimals.
std::string to_microseconds(Duration time);

}  // namespace frazil
